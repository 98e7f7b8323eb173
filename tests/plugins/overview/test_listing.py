def test_the_list_names_each_plugin_and_what_it_adds(nmt):
    rows = [line.split(maxsplit=2) for line in nmt("plugins").out.splitlines()]
    assert rows[0][0] == "core"
    assert ["overview", "command", "runs, plugins"] in rows
