// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: each row of core/protocol/formats.def is complete, and true of the scripts of its format.
// The compiler checks the rest (core/protocol/format.cc).
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "protocol/format.h"
#include "protocol/keys.h"
#include "protocol/scripts.h"

namespace redlatch::protocol {
namespace {

bool has_scripts(Format format, std::initializer_list<Script> scripts) {
  size_t count = 0;
  for (const Script script : scripts) {
    for (const bool is_sharded : {false, true}) {
      count += script_text(script, format, is_sharded).size > 0 ? 1 : 0;
    }
  }
  EXPECT_TRUE(count == 0 || count == 2 * scripts.size()) << "some, but not all";
  return count > 0;
}

TEST(FormatTest, the_properties_of_a_row_are_those_of_its_scripts) {
  for (const Format format : kFormats) {
    const FormatTraits &row = traits(format);
    SCOPED_TRACE(row.word);
    EXPECT_TRUE(has_scripts(
        format, {Script::kAcquire, Script::kRelease, Script::kCancel, Script::kServeQueue,
                 Script::kInspect, Script::kForceRelease, Script::kExtendShared, Script::kDetach}))
        << "these are of each format";
    EXPECT_EQ(row.has_readers,
              has_scripts(format, {Script::kAcquireRead, Script::kUpgrade, Script::kDowngrade}));
    EXPECT_EQ(row.has_extend, has_scripts(format, {Script::kExtend}));
    EXPECT_EQ(row.has_attach, has_scripts(format, {Script::kAttach}));
    EXPECT_EQ(row.has_quorum, has_scripts(format, {Script::kVote, Script::kRaiseFence}));
    EXPECT_EQ(row.has_permits, has_scripts(format, {Script::kSetCap, Script::kStats}));
    EXPECT_EQ(row.has_jobs, has_scripts(format, {Script::kOnceBegin, Script::kOnceForget}));
  }
}

TEST(FormatTest, properties_that_need_others_have_them) {
  for (const Format format : kFormats) {
    const FormatTraits &row = traits(format);
    SCOPED_TRACE(row.word);
    EXPECT_LE(row.has_owner + row.has_readers + row.has_permits, 1)
        << "a script has one more argument, not two";
    EXPECT_TRUE(row.has_readers || !row.has_reader_key);
    EXPECT_TRUE(row.has_extend || !row.has_handoff) << "one token serves several callers";
    EXPECT_TRUE(row.has_extend || !row.has_quorum) << "a vote is extended by EXTEND";
  }
}

TEST(FormatTest, formats_share_the_lock_key_and_the_fence_only) {
  const LockKeys first("app:", "a", kFormats[0]);
  for (const Format format : kFormats) {
    const LockKeys keys("app:", "a", format);
    SCOPED_TRACE(traits(format).word);
    EXPECT_EQ(keys.lock, first.lock);
    EXPECT_EQ(keys.fence, first.fence);
    EXPECT_EQ(keys.queue == first.queue, format == kFormats[0]);
    EXPECT_EQ(keys.queue, "app:{app:a}:rl1:" + std::string(traits(format).letter) + "q");
  }
}

TEST(FormatTest, messages_list_the_formats_with_a_property) {
  EXPECT_EQ(words_of_formats(&FormatTraits::has_owner), "hash");
  EXPECT_EQ(words_of_formats(&FormatTraits::has_readers), "string or hash-rw");
}

}  // namespace
}  // namespace redlatch::protocol
