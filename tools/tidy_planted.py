# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Defects that `tidy.py --self-test` plants in scratch trees, and what it has to find of each.

It is written so that the file itself does not contain what tidy.py looks for.
"""

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
SPDX_HASH = SPDX.replace("//", "#")
SPDX_LUA = SPDX.replace("//", "--")
LONG_BODY = "  f();\n" * 80
INIT = "A::A() : a_{1}, b_(2) {\n"

# (file, content, a part of the finding, or None where nothing may be found)
FILES = (
    ("core/base/wide.h", SPDX + "// " + "x" * 100 + "\n", "103 columns"),
    ("core/base/long.h", SPDX + "int x;\n" * 600, "601 lines in a file"),
    ("core/base/f.cc", SPDX + "void f(int a) {\n" + LONG_BODY + "}\n", "82 lines in a function"),
    ("core/base/init.cc", SPDX + INIT + LONG_BODY + "}\n", "lines in a function"),
    ("core/base/c.cc", SPDX + "struct S f(void) {\n" + LONG_BODY + "}\n", "lines in a function"),
    ("core/base/t.cc", SPDX + "template <class T>\nT f() {\n" + LONG_BODY + "}\n", "83 lines"),
    ("core/base/m.cc", SPDX + "class A : B<C()> {\nint f() {\n" + LONG_BODY + "}\n};\n", "82 lin"),
    ("core/base/class.h", SPDX + "class A {\n" + "  void f();\n\n" * 45 + "};\n", None),
    ("core/base/space.h", SPDX + "namespace a {\n" + "void f() {}\n" * 90 + "}\n", None),
    ("java/Info.java", SPDX + "public record A(int b) {\n" + "void f() {}\n" * 90 + "}\n", None),
    ("core/base/text.cc", SPDX + 'void f() { g("{", \'{\'); }  // {\n' + "int a;\n" * 90, None),
    ("core/base/table.cc", SPDX + "int a[] = {\n" + "  f(1),\n" * 90 + "};\n", None),
    ("tools/long.py", SPDX_HASH + "def f():\n" + "    g()\n" * 80, "81 lines in a function"),
    ("tools/bad.py", SPDX_HASH + "def f(:\n", "does not parse"),
    ("core/base/bare.h", "int x;\n", "no licence line"),
    ("core/protocol/scripts/bare.lua", "return 1\n", "no licence line"),
    ("tools/bare", "#!/bin/sh\ntrue\n", "no licence line"),
    ("core/CMakeLists.txt", "project(x)\n", "no licence line"),
    ("core/base/up.h", SPDX + '#include "timing/x.h"\n', "may name only base"),
    ("core/timing/side.h", SPDX + '#include "protocol/x.h"\n', "may name only base, timing"),
    ("core/protocol/side.h", SPDX + "#include <net/x.h>\n", "may name only base, protocol"),
    ("core/lock/net.h", SPDX + '#include "net/x.h"\n', "core/lock includes net/x.h"),
    ("core/lock/ok.h", SPDX + '#include "timing/x.h"\n#include "protocol/x.h"\n', None),
    ("core/lock/up.h", SPDX + '#include "quorum/x.h"\n', "core/lock includes quorum/x.h"),
    ("core/quorum/net.h", SPDX + '#include "net/x.h"\n', "core/quorum includes net/x.h"),
    ("core/quorum/lock.h", SPDX + "#include <mutex>\n", "no clock, thread or random"),
    ("core/config/up.h", SPDX + '#include "runtime/x.h"\n', "core/config includes runtime/x.h"),
    ("core/runtime/side.h", SPDX + '#include "config/x.h"\n', "core/runtime includes config/x.h"),
    ("core/news/x.h", SPDX, "no rule says"),
    ("core/runtime/up.h", SPDX + '#include "redlatch/redlatch.h"\n', "core/runtime includes redl"),
    ("core/runtime/dots.h", SPDX + '#include "../base/x.h"\n', "includes ../base/x.h"),
    ("core/base/list.h", SPDX + '#include "../../capi/statuses.def"\n', None),
    ("capi/src/deep.cc", SPDX + '#include "lock/x.h"\n', "may name only base, config, runtime"),
    ("cli/src/deep.cc", SPDX + '#include "runtime/x.h"\n', "only redlatch/redlatch.h"),
    ("examples/c/deep.c", SPDX + '#include "redlatch/private.h"\n', "only redlatch/redlatch.h"),
    ("tests/capi/deep.c", SPDX + '#include "../../core/base/x.h"\n', "only redlatch/redlatch.h"),
    ("go/internal/rlc/deep.c", SPDX + '#include "runtime/x.h"\n', "only redlatch/redlatch.h"),
    ("java/redlatch/deep.c", SPDX + '#include "runtime/x.h"\n', "only redlatch/redlatch.h"),
    ("tests/unit/ok.cc", SPDX + '#include "lock/x.h"\n#include <thread>\n', None),
    ("core/runtime/hiredis.h", SPDX + "#include <hiredis/hiredis.h>\n", "hiredis and OpenSSL only"),
    ("core/runtime/ssl.h", SPDX + "#include <openssl/ssl.h>\n", "hiredis and OpenSSL only"),
    ("core/protocol/socket.h", SPDX + "#include <sys/socket.h>\n", "sockets only in"),
    ("core/lock/poll.h", SPDX + "#include <poll.h>\n", "sockets only in"),
    ("core/net/ok.h", SPDX + "#include <hiredis/hiredis.h>\n#include <poll.h>\n", None),
    ("core/timing/clock.h", SPDX + "#include <chrono>\n", "no clock, thread or random"),
    ("core/lock/lock.h", SPDX + "#  include <mutex>\n", "no clock, thread or random"),
    ("core/runtime/ok.h", SPDX + "#include <mutex>\n", None),
    ("core/lock/names.h", SPDX + "quorum::Quorum *f();\n", "names quorum::Quorum; it may name"),
    ("core/lock/call.cc", SPDX + "void f() { redlatch::runtime::g(1); }\n", "names redlatch::runt"),
    ("core/lock/full.cc", SPDX + "::redlatch::quorum::X a;\n", "names ::redlatch::quorum::X; it"),
    ("core/lock/global.cc", SPDX + "f(::quorum::X());\n", "names ::quorum::X; it may name"),
    ("core/lock/alias.cc", SPDX + "namespace q = redlatch::quorum;\n", "opens namespace q = redl"),
    ("core/lock/using.cc", SPDX + "using namespace quorum;\n", "opens namespace quorum; it may"),
    ("core/lock/others.cc", SPDX + "auto a = std::net::b(), c = other::quorum::d();\n", None),
    ("core/base/slot.h", SPDX + '#include "cluster/slot_map.h"\n', "core/base includes cluster/"),
    ("core/quorum/slot.h", SPDX + '#include "cluster/slot_map.h"\n', "core/quorum includes clus"),
    ("core/lock/upgrade.h", SPDX + '#include "cluster/slot_map.h"\n', "core/lock includes clust"),
    ("capi/src/slot.cc", SPDX + '#include "cluster/slot_map.h"\n', "capi/src includes cluster/"),
    ("cli/src/slot.cc", SPDX + '#include "cluster/slot_map.h"\n', "only redlatch/redlatch.h"),
    ("core/quorum/slots.cc", SPDX + "cluster::SlotMap a;\n", "names cluster::SlotMap; it may"),
    ("core/cluster/time.h", SPDX + "#include <chrono>\n", "no clock, thread or random"),
    ("core/cluster/down.h", SPDX + '#include "lock/x.h"\n', None),
    ("core/timing/opens.h", SPDX + "namespace redlatch::lock { class A; }\n", "opens namespace"),
    ("capi/src/names.cc", SPDX + "auto a = protocol::Mode::kRead;\n", "names protocol::Mode; it"),
    ("core/lock/words.cc", SPDX + 'f("quorum::Quorum");  // of quorum::Quorum\n', None),
    ("core/lock/down.cc", SPDX + "auto a = timing::f(protocol::g()), b = x.net::y;\n", None),
    ("core/lock/upgrade.h", SPDX + "void f(KeyWatch &watch);\n", "names KeyWatch; a machine"),
    ("core/lock/cleanup.cc", SPDX + "lock::HeldLease f();\n", "names lock::HeldLease; a mach"),
    ("core/lock/upgrade.cc", SPDX + "redlatch::lock::HeldLease a;\n", "names redlatch::lock"),
    ("core/lock/upgrade.cc", SPDX + "::redlatch::lock::Lease a;\n", "names ::redlatch::lock"),
    ("core/lock/cleanup.h", SPDX + "redlatch::protocol::Command a;\n", "names redlatch::proto"),
    ("core/lock/key_watch.h", SPDX + "class LockClient;\n", "names LockClient; a machine knows"),
    ("core/lock/waitlist.h", SPDX + "void f(Request *);\n", "names Request; a machine knows"),
    ("core/lock/held_lease.cc", SPDX + "protocol::Command a;\n", "names protocol::Command; a"),
    ("core/lock/acquisition.h", SPDX + '#include "lock/waitlist.h"\n', "reaches lock/waitlist.h"),
    ("core/lock/upgrade.cc", SPDX + '#include "lock/lock_client.h"\n', "reaches lock/lock_client"),
    ("core/lock/cleanup.h", SPDX + '#include "protocol/command.h"\n', "reaches protocol/command.h"),
    ("core/lock/new.h", SPDX + "const char *check() const;\n", "no machine of tools/tidy.py"),
    ("core/lock/holding.cc", SPDX + "Upgrade a; KeyWatch b; TokenRecord c;\n", None),
    ("core/lock/moving.cc", SPDX + '#include "lock/upgrade.h"\n', None),
    ("core/lock/queueing.cc", SPDX + "void f(Upgrade &a);\n", "names Upgrade; only the files of"),
    ("core/lock/queueing.h", SPDX + '#include "lock/upgrade.h"\n', "includes lock/upgrade.h; only"),
    ("core/lock/queueing.h", SPDX + "struct Lease;\nLease *f(Request &a);\n", None),
    ("core/quorum/m.cc", SPDX + "lock::Upgrade *a;\n", "names lock::Upgrade; only the files of"),
    ("core/quorum/n.cc", SPDX + '#include "lock/cleanup.h"\n', "includes lock/cleanup.h; only the"),
    ("core/quorum/own.cc", SPDX + "void f(Upgrade a, protocol::Command b);\n", None),
    ("core/lock/waitlist.cc", SPDX + "// As TokenRecord.\nWaitlist::Command a;\n", None),
    ("core/base/cut.cc", SPDX + "// Engine, part 1 o" "f 4: more\n", "a class cut into files"),
    ("docs/cut.md", "Part 2 o" "f 12\n", "a class cut into files"),
    ("docs/host.md", "see https://py" "pi.org/x\n", "registry's host name"),
    ("docs/path.md", "in /wor" "k/main\n", "absolute path"),
    ("docs/fine.md", "a/wor" "k/x $root/roo" "t/x TOD" "O(#12)\n", None),
    ("core/base/note.h", SPDX + "// TOD" "O: later\n", "nobody will find"),
    ("docs/latin.md", b"caf\xe9\n", "not UTF-8"),
    ("docs/table.md", "| " + "x " * 80 + "|\n", None),
    ("core/lock/say.cc", SPDX + 'auto a = f("it is fine") + " and nobo" "dy waits";\n', None),
    ("core/lock/who.cc", SPDX + 'auto a = f("fine", "and nobody waits");\n', "`nobody` in a mess"),
    ("cli/src/on.cc", SPDX + '// fine\nauto a = "it Goes on";\n', "3: `Goes on` in a message"),
    ("go/raw.go", SPDX + "var a = `it was given back`\n", "`given back` in a message"),
    ("go/raw_test.go", SPDX + "var a = `it was given back`\n", None),
    ("capi/list.def", SPDX + 'A("whoever")\n', "`whoever` in a message"),
    ("python/src/a.py", SPDX_HASH + 'def f():\n    """Nobody."""\n    g(1)\n', None),
    ("python/src/b.py", SPDX_HASH + 'f(f"{a} is mended")\n', "`mended` in a message"),
    ("docs/a.md", "A\n\nlocks are held for\never, b", "3: `for ever` for people"),
    ("README.md", "    nobody\n```\nnobody\n```\n`nobody` [a](nobody.md)\nsaid Nobody\n", "6: `No"),
    ("capi/include/redlatch/a.h", SPDX + "/** a\n * but for b */\n", "3: `but for` for people"),
    ("capi/include/redlatch/b.hpp", SPDX + "int anybody();  /// goes on\n", None),
    ("core/lock/talk.cc", SPDX + "// Fine. It lets\n// go of it.\n", "2: `lets go` in"),
    ("core/lock/open.h", SPDX + "int a;  // fine. Whether it waits.\n", "opens with `Whether`"),
    ("capi/src/open.cc", SPDX + "// It waits.\n//\n// What it is.\n", "4: a comment opens wit"),
    ("cli/src/open.h", SPDX + "\n/* Of a lock. */\nint a;  // what it is. of it.\n", "3: a comm"),
    ("core/protocol/scripts/a.lua", SPDX_LUA + "a = b - c -- goes on\n", "2: `goes on` in a com"),
    ("core/protocol/scripts/b.lua", SPDX_LUA + "-- It is: Of a.\n", "2: a comment opens wi"),
    ("core/protocol/scripts/c.lua", SPDX_LUA + "-- K waits.\na = 'told'\n", None),
    ("docs/design/a.md", "nobody\n", None),
    ("tests/unit/who.cc", SPDX + 'auto a = "nobody";\n', None),
    ("core/base/gen.h", SPDX + "// @generated\n" + "int x;\n" * 700, None),
)

CLIENT_H = {"core/lock/lock_client.h": SPDX + "class LockClient;\n"}
BY_VALUES = SPDX + '#include "lock/lock_types.h"\n'
BY_BASE = SPDX + '#include "base/a.h"\n'

# (files, a part of each finding)
MANY = "\n".join(f"  int f{i}() const;\n  int n{i};" for i in range(61))

TREES = (
    (
        {"core/lock/a.h": f"{SPDX}struct Big {{\n{MANY}\n}};\n"},
        ("a.h:2: 61 functions in Big; at most 60", "a.h:2: 61 fields in Big; at most 25"),
    ),
    (
        {"core/runtime/a.h": f"{SPDX}namespace redlatch::runtime {{\nstruct Link {{}};\n}}\n"},
        ("a.h:3: 0 fields in redlatch::runtime::Link; lower its row",),
    ),
    # By the shared values a machine would see LockClient, which these may include otherwise.
    (
        {
            "core/lock/upgrade.h": BY_VALUES,
            "core/lock/lock_types.h": SPDX + '#include "lock/lock_client.h"\n',
        }
        | CLIENT_H,
        ("upgrade.h:2: reaches lock/lock_client.h by lock/lock_types.h; a machine",),
    ),
    (
        {
            "core/lock/upgrade.h": BY_VALUES,
            "core/lock/lock_types.h": BY_BASE,
            "core/base/a.h": SPDX,
        },
        (),
    ),
    # One wrong arrow is found in each file from which it leads up.
    (
        {
            "core/timing/a.h": BY_BASE,
            "core/base/a.h": SPDX + '#include "lock/lock_client.h"\n',
        }
        | CLIENT_H,
        (
            "core/base/a.h:2: core/base includes lock/lock_client.h",
            "core/timing/a.h:2: reaches lock/lock_client.h by base/a.h; core/timing may not",
        ),
    ),
    (
        {
            "core/quorum/a.h": BY_BASE,
            "core/base/a.h": SPDX + '#include "cluster/slot_map.h"\n',
            "core/cluster/slot_map.h": SPDX,
        },
        (
            "core/base/a.h:2: core/base includes cluster/slot_map.h",
            "core/quorum/a.h:2: reaches cluster/slot_map.h by base/a.h; core/quorum may not",
        ),
    ),
    # What config may include is no name of capi.
    (
        {
            "capi/src/a.cc": SPDX + '#include "config/a.h"\nnet::Connection *a;\n',
            "core/config/a.h": SPDX + '#include "net/a.h"\nnet::Connection *b;\n',
            "core/net/a.h": SPDX,
        },
        ("capi/src/a.cc:3: names net::Connection; it may name only base, config, runtime",),
    ),
)
