"""Lines to lines: segments, devices, files that go on where they were killed, Ray."""
