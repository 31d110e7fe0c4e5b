"""The packages that the bugs are put into: pinned source distributions that carry their tests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A pure-Python package on the index.

    `sha256` is that of its source distribution.  `code` are the folders and files that bugs are put into, `tests`
    the test files and folders, both relative to the top of the distribution.  `timed` are those of them that measure
    time: they run, and do not count.
    """

    name: str
    version: str
    licence: str
    code: tuple[str, ...]
    tests: tuple[str, ...]
    sha256: str
    timed: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        """As pip takes it."""
        return f"{self.name}=={self.version}"


#: All of them, by name.
PACKAGES = (
    Package(
        "cachetools", "8.0.1", "MIT", ("src",), ("tests",),
        "deb1d376d4d28c2f33f3e3058043b005e0af75c35c094bd54053e27d2906ad95",
    ),
    Package(
        "inflection", "0.5.1", "MIT", ("inflection",), ("test_inflection.py",),
        "1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417",
    ),
    Package(
        "jsonpointer", "3.12", "BSD-3-Clause", ("jsonpointer.py",), ("tests.py",),
        "7a3dcc11b64053eaa9c549e85e413f8d40a075215f793a331bed9182a14251ae",
    ),
    Package(
        "parse", "1.22.4", "MIT", ("parse",), ("tests",),
        "706d458feed5a81b02768d3156e8070baf6cee7d150a3a3c0cd43101a875c3b5",
    ),
    Package(
        "rfc3986", "2.0.0", "Apache-2.0", ("src",), ("tests",),
        "97aacf9dbd4bfd829baad6e6309fa6573aaf1be3f6fa735c8ab05e46cecb261c",
    ),
    Package(
        "schema", "0.7.8", "MIT", ("schema",), ("test_schema.py",),
        "e86cc08edd6fe6e2522648f4e47e3a31920a76e82cce8937535422e310862ab5",
    ),
    Package(
        "semver", "3.1.1", "BSD-3-Clause", ("src",), ("tests",),
        "149b26cabada6f63212f97e94505d21578cb1d280cf714827f328d5e70765fea",
    ),
    Package(
        "sqlparse", "0.6.1", "BSD-3-Clause", ("sqlparse",), ("tests",),
        "ca722573f848ff2d30e40ea30f53a104b7dea7635ea9285891263eb2c58fb6e7",
        ("tests/test_dos_prevention.py",),
    ),
    Package(
        "tabulate", "0.10.0", "MIT", ("tabulate",), ("test",),
        "e2cfde8f79420f6deeffdeda9aaec3b6bc5abce947655d17ac662b126e48a60d",
    ),
    Package(
        "tinydb", "4.9.0", "MIT", ("tinydb",), ("tests",),
        "6928b1fa785186bda7952a0ba05aaeedc883ede565ca9c7d608de44e5e75de70",
    ),
    Package(
        "toolz", "1.2.0", "BSD-3-Clause", ("toolz",), ("toolz/tests",),
        "9667a038e9d6ecba37995e26cb2f59ec6420b6ad8dd9677de59db9b956b08490",
    ),
    Package(
        "unidiff", "1.0.1", "MIT", ("unidiff",), ("tests",),
        "d9425bc516390c54743a1045b2c1c97f02d245a913a241dd499f958adb2df998",
    ),
    Package(
        "voluptuous", "0.16.0", "BSD-3-Clause", ("voluptuous",), ("voluptuous/tests",),
        "006535e22fed944aec17bef6e8725472476194743c87bd233e912eb463f8ff05",
    ),
    Package(
        "webcolors", "25.10.0", "BSD-3-Clause", ("src",), ("tests",),
        "62abae86504f66d0f6364c2a8520de4a0c47b80c03fc3a5f1815fedbef7c19bf",
    ),
    Package(
        "xmltodict", "1.0.4", "MIT", ("xmltodict.py",), ("tests",),
        "6d94c9f834dd9e44514162799d344d815a3a4faec913717a9ecbfa5be1bb8e61",
    ),
)  # fmt: skip
