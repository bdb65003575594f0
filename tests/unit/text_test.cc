// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: what a server or a caller says is text in every message. Method: tables.
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace redlatch {

constexpr char kWrong[] = "\xef\xbf\xbd";  // U+FFFD

TEST(TextTest, invalid_utf8_is_replaced) {
  const std::string wrong = kWrong;
  for (const auto &[given, expected] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", ""},
           {"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92",
            "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92"},
           {"a\xff"
            "b",
            "a" + wrong + "b"},
           {"\xc3", wrong},
           {"\xc3(", wrong + "("},
           {"\xe2\x82", wrong + wrong},
           {"\xc0\xaf", wrong + wrong},  // too long a form
           {"\xe0\x80\x80", wrong + wrong + wrong},
           {"\xed\xa0\x80", wrong + wrong + wrong},  // half of a surrogate pair
           {"\xf4\x90\x80\x80", wrong + wrong + wrong + wrong},
           {"\xf8", wrong},
           {"a\r\n\t\x1b\x7f"
            "b",
            "a     b"},
           {"a\xc2\x9b"
            "b",
            "a b"},
           {std::string("a\0b", 3), "a b"}}) {
    EXPECT_EQ(clean(given), expected) << given;
    EXPECT_EQ(clean(clean(given)), clean(given));
    EXPECT_EQ(failure(Status::kServer, given).message, expected);
  }
}

TEST(TextTest, a_cut_leaves_whole_characters) {
  EXPECT_EQ(cut("abc", 3), "abc");
  EXPECT_EQ(cut("abcd", 3), "abc");
  EXPECT_EQ(cut("a\xc3\xa9", 2), "a");
  EXPECT_EQ(cut("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(cut("\xf0\x9f\x94\x92", 3), "");
  EXPECT_EQ(cut("\xf0\x9f\x94\x92x", 4), "\xf0\x9f\x94\x92");
}

TEST(TextTest, durations_are_shown_in_seconds) {
  EXPECT_EQ(in_seconds(0), "0 s");
  EXPECT_EQ(in_seconds(5), "0.005 s");
  EXPECT_EQ(in_seconds(50), "0.05 s");
  EXPECT_EQ(in_seconds(300), "0.3 s");
  EXPECT_EQ(in_seconds(90'000), "90 s");
  EXPECT_EQ(in_seconds(1'234), "1.234 s");
}

}  // namespace redlatch
