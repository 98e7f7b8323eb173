def test_plugins_lists_what_each_plugin_adds(nmt):
    rows = [line.split(maxsplit=2) for line in nmt("plugins").out.splitlines()]
    assert rows[0][0] == "core"
    assert ["core", "optimizer", "adam, muon, adafactor"] in rows
