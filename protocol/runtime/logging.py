"""Logs in the events' words: one JSON object a line in a file, one readable line on the console, never a secret.

log = structlog.get_logger("operator")
log.info("commitment_posted", job=7, shard=3)
"""

import logging
import logging.handlers
import re
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final

import structlog
from structlog.typing import Processor

LOG_BYTES: Final = 2**25  # 32 MiB in one file, then it is rotated
LOG_FILES: Final = 3
HIDDEN: Final = "[redacted]"
_SECRET: Final = re.compile(r"key|password|passphrase|secret|mnemonic|(?:^|_)token$", re.I)
_DEPTH: Final = 8


def configure_logging(path: Path | None = None, *, console: bool = True, level: str = "info") -> None:
    """Send everything that is logged to a file of JSON lines, to the console (standard error), to both or nowhere.

    Calling it again replaces what was set. Messages of libraries (warnings and above) take the same way.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for old in root.handlers[:]:
        if getattr(old, "_gradmarket", False):
            root.removeHandler(old)
            old.close()
    for handler, last in _handlers(path, console):
        handler.setFormatter(_formatter(shared, last))
        handler._gradmarket = True  # type: ignore[attr-defined]
        root.addHandler(handler)
    root.setLevel(level.upper())
    for library in ("aiohttp", "asyncio", "web3", "urllib3"):
        logging.getLogger(library).setLevel(logging.WARNING)


def redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: hide the value of every name that sounds like a secret, at any depth.

    The names err on the safe side: log an action's key as `action`, a public key as `signer`.
    """
    return {name: _hidden(name, value, _DEPTH) for name, value in event.items()}


def _hidden(name: str, value: Any, depth: int) -> Any:
    if _SECRET.search(name):
        return HIDDEN
    if depth and isinstance(value, Mapping):
        return {key: _hidden(str(key), inner, depth - 1) for key, inner in value.items()}
    if depth and isinstance(value, list | tuple):
        return [_hidden("", inner, depth - 1) for inner in value]
    return value


def _handlers(path: Path | None, console: bool) -> list[tuple[logging.Handler, list[Processor]]]:
    handlers: list[tuple[logging.Handler, list[Processor]]] = []
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = logging.handlers.RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
        handlers.append((file, [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]))
    if console:
        colours = sys.stderr.isatty()
        handlers.append((logging.StreamHandler(sys.stderr), [structlog.dev.ConsoleRenderer(colors=colours)]))
    return handlers


def _formatter(shared: list[Processor], last: list[Processor]) -> logging.Formatter:
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove, redact, *last])
