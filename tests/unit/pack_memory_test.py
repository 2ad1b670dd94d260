"""The memory that packing takes does not depend on how much text there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pack.measure import measure, write_text


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["txt", "jsonl"])
def test_three_times_the_text_needs_no_more_memory(tmp_path: Path, kind: str) -> None:
    """Both are larger than what a tokenizer is trained on."""
    small, large = (
        measure(write_text(tmp_path / f"{size}.{kind}", size * 10**6), tmp_path / str(size)) for size in (40, 120)
    )
    assert large.tokens > 2.9 * small.tokens > 10**7
    assert small.peak_mib < large.peak_mib + 40 and large.peak_mib < small.peak_mib + 40 and large.peak_mib < 400
