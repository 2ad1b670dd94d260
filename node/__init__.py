"""Programs for people: a device that earns, a poster's tools, the demo."""
