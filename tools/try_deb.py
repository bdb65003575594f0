# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""The trial of the Debian packages, for tools/try_packages.py: what a shell does in a clean root.

The command, Python, and C by pkg-config and by find_package each take a lock. Then the packages are
purged, and the root must have the files that it had before.
"""

TOOLS = "g++,cmake,make,pkg-config,python3"
COMMANDS = """\
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:$PATH
all_files() {
  find / -xdev \\( -path /try -o -path /tmp -o -path /var/cache -o -path /var/lib/apt \\
    -o -path /var/lib/dpkg -o -path /var/log \\) -prune -o -print | sort
}
took() { now=$(date +%s%N); echo "$1 after $(((now - began) / 1000000)) ms"; began=$now; }
# A trial that ended too soon has left them.
dpkg --purge redlatch python3-redlatch libredlatch-dev libredlatch0
all_files >before
began=$(date +%s%N)
apt-get -o Dpkg::Use-Pty=0 install -qq -y --no-install-recommends /packages/deb/*.deb
took installed
redlatch --url "$URL" run report -- sh -c 'echo "held, fence $REDLATCH_FENCE"'
took command
python3 - "$URL" <<'END'
import importlib.metadata
import sys

import redlatch

with redlatch.connect(sys.argv[1]) as client, client.lock("report") as lease:
    print("held, fence", lease.fence)
assert importlib.metadata.version("redlatch")
END
took python3
cc -Wall -Wextra -Werror -o shared main.c $(pkg-config --cflags --libs redlatch)
./shared "$URL"
took pkg-config
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(report C CXX)
find_package(redlatch REQUIRED)
add_executable(by-cmake main.c)
target_link_libraries(by-cmake redlatch::redlatch)
add_executable(static main.c)
target_link_libraries(static redlatch::static)
set_target_properties(static PROPERTIES LINKER_LANGUAGE CXX)
END
cmake -S . -B build
cmake --build build
build/by-cmake "$URL"
build/static "$URL"
took find_package
test -x /usr/libexec/redlatch/redlatch-embedded
apt-get -o Dpkg::Use-Pty=0 purge -qq -y libredlatch0 libredlatch-dev redlatch python3-redlatch
all_files >after
diff before after
if dpkg-query -W '*redlatch*' 2>/dev/null; then exit 1; fi
took purged
"""
