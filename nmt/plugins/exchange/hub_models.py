"""Model directories on the Hugging Face Hub, which every command takes as run=hub:ORG/NAME."""

from nmt import commands, files
from nmt.plugins.exchange.hub_card import origin_of
from nmt.plugins.exchange.hub_download import download
from nmt.plugins.exchange.hub_files import NMT
from nmt.plugins.exchange.hub_names import PREFIX, parse


def find_model(name: str) -> files.NamedModel:
    """Download a model directory, unless its commit is in the cache, and report the commit."""
    hub_name = parse(name)
    report = commands.talker().print
    snapshot = download(hub_name, NMT, report)
    # Without the hub, `download` has reported the commit.
    if snapshot.is_current and snapshot.commit != hub_name.revision:
        report(f"{hub_name} is commit {snapshot.commit}")
    origin = {"base_model": snapshot.repository, "revision": snapshot.commit}
    license = origin_of(snapshot.folder).get("license")
    if license is not None:
        origin["license"] = license
    # A name with the commit, which stands for the same files at any time.
    exact = f"{PREFIX}{snapshot.repository}@{snapshot.commit}"
    return files.NamedModel(snapshot.folder, exact, origin)
