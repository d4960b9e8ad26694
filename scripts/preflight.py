"""What must be on the machine before anything is installed or started, checked with messages that say what to do.

    python3 scripts/preflight.py             Python and its venv module
    python3 scripts/preflight.py --java      also Java, which Spark runs on
    python3 scripts/preflight.py --pyspark   also pyspark in this environment

Runs on any Python 3 without a package, so that an old one gets the message and not a syntax error: no new syntax here.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys

PYTHON_NEEDED = (3, 10)
#: The versions Spark 4 runs on; 17 is the one tests run with.
JAVA_NEEDED = (17, 21)

INSTALL_JAVA = """\
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
  Fedora, RHEL     sudo dnf install java-17-openjdk-headless
  macOS            brew install openjdk@17
  any system       https://adoptium.net (Temurin 17)
If it is installed already but another version is found first, name its folder:
  export JAVA_HOME=/path/to/jdk-17        ($JAVA_HOME/bin/java must exist)"""


def python_problem(version: tuple) -> str:
    """Why this Python cannot be used, or nothing."""
    if tuple(version[:2]) >= PYTHON_NEEDED:
        return ""
    found = ".".join(str(part) for part in version[:3])
    return (
        f"Python 3.10 or newer is needed; this is {found} ({sys.executable}).\n"
        "Install a newer one (apt-get install python3.11, brew install python@3.11, https://python.org) and name it:\n"
        "  make PYTHON=python3.11 ..."
    )


def venv_problem() -> str:
    """Debian's python3 comes without what `python3 -m venv` needs."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return ""
    return (
        "This Python cannot create virtual environments. Install the missing part:\n  sudo apt-get install python3-venv"
    )


def java_problem() -> str:
    """Why Spark would not start with the Java it would find: $JAVA_HOME first, then the PATH."""
    home = os.environ.get("JAVA_HOME", "")
    java = os.path.join(home, "bin", "java") if home else (shutil.which("java") or "")
    accepted = " or ".join(str(version) for version in JAVA_NEEDED)
    if home and not os.access(java, os.X_OK):
        return (
            f"JAVA_HOME is {home}, but there is no {java}.\nCorrect or unset JAVA_HOME, or get Java 17:\n{INSTALL_JAVA}"
        )
    if not java:
        return (
            f"Java {accepted} is needed (Spark runs on it); there is no java in the PATH. Install it:\n{INSTALL_JAVA}"
        )
    said = _output_of(java)
    major = java_major(said)
    if major in JAVA_NEEDED:
        return ""
    found = f"{java} is Java {major}" if major else f"{java} -version did not tell its version ({_first_line(said)})"
    return f"Java {accepted} is needed (Spark runs on it); {found}. Install Java 17:\n{INSTALL_JAVA}"


def java_major(text: str) -> int:
    """The major version in the output of `java -version`; 0 when there is none.

    >>> java_major('openjdk version "17.0.15" 2025-04-15'), java_major('java version "1.8.0_402"'), java_major("what?")
    (17, 8, 0)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else 0


def pyspark_problem() -> str:
    if importlib.util.find_spec("pyspark"):
        return ""
    return (
        f"pyspark is not installed for {sys.executable}. Install it:\n"
        "  pip install 'dbt-ivm[spark]'        (in this repository: make .venv)"
    )


#: What Spark's start-up log contains → what is wrong and what to do, first match wins.
START_FAILURES = (
    (
        r"unresolved dependenc|Server access error|module not found: (?:io\.delta|org\.apache\.iceberg)",
        "Spark could not download the Delta Lake jars from Maven Central (needed once; they are kept in ~/.ivy2.5.2).\n"
        "  no network         connect once; later starts work offline\n"
        "  behind a proxy     export JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=<host> -Dhttps.proxyPort=<port>'\n"
        "  a company mirror   export DEFAULT_ARTIFACT_REPOSITORY=<the URL of its Maven repository>/",
    ),
    (
        r"UnsupportedClassVersionError|class file version",
        "The Java that was found is too old for Spark 4. Install Java 17:\n" + INSTALL_JAVA,
    ),
    (
        r"Could not reserve enough space|insufficient memory|Cannot allocate memory",
        "There is not enough free memory for Spark's 4 GB. Close other programs and try again.",
    ),
    (
        r"Another instance of Derby may have already booted",
        "Another Spark process uses the same metastore folder. Let it finish (or end it) and try again.",
    ),
    (
        r"[Nn]o space left on device",
        "The disk is full. Spark needs about 1 GB here and in the temporary folder.",
    ),
)


def start_failure(log: str) -> str:
    """What a failed start of Spark means, from what it wrote to its log; nothing when it is not a known failure."""
    for pattern, message in START_FAILURES:
        if re.search(pattern, log):
            return message
    return ""


def _output_of(java: str) -> str:
    try:
        done = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return done.stdout.decode("utf-8", "replace")


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[0]


def main(arguments: list) -> int:
    parser = argparse.ArgumentParser(description="Check what must be there before the rest can work.")
    parser.add_argument("--java", action="store_true", help="also check Java")
    parser.add_argument("--pyspark", action="store_true", help="also check that pyspark is installed for this Python")
    asked = parser.parse_args(arguments)
    problems = [python_problem(sys.version_info), venv_problem()]
    if asked.java:
        problems.append(java_problem())
    if asked.pyspark:
        problems.append(pyspark_problem())
    for problem in filter(None, problems):
        print(problem + "\n", file=sys.stderr)
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
