"""The shipped example of OpenWrt, for a lab's interfaces."""

from __future__ import annotations

import re

from tools import ROOT

SSH = "transport: {type: ssh, host: openwrt.example.net, user: root}\n"


def example() -> str:
    """The shipped one for the lab's interfaces, without the firewall, which is OpenWrt's own script."""
    text = (ROOT / "dut_configs" / "examples" / "openwrt.yaml").read_text()
    text, dropped = re.subn(r"    - what: firewall stopped\n(?:      .*\n)+", "", text)
    assert dropped == 1 and SSH in text
    return text.replace("eth1", "d0").replace("eth2", "d1")


def in_lab(prefix: str) -> str:
    """The example for the router of a lab with this prefix."""
    return example().replace(SSH, f"transport: {{type: netns}}\nlab: {{prefix: {prefix}}}\n")
