// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a command is written with its counts, whatever its bytes are. Method: texts.
#include "resp/command_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace redlatch::resp {

std::string written(const std::vector<std::string_view> &argv) {
  std::string out;
  append_command(out, argv);
  return out;
}

TEST(CommandWriterTest, arguments_are_counted_strings) {
  using namespace std::string_view_literals;
  EXPECT_EQ(written({"PING"}), "*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(written({"SET", "", "a\0\r\n"sv}), "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\0\r\n\r\n"sv);
}

TEST(CommandWriterTest, a_size_has_as_many_digits_as_it_needs) {
  for (const size_t size : {9u, 10u, 99u, 100u, 1000u, 123'456u}) {
    const std::string text(size, 'x');
    EXPECT_EQ(written({text}), "*1\r\n$" + std::to_string(size) + "\r\n" + text + "\r\n");
  }
  const std::string many = written(std::vector<std::string_view>(100, "a"));
  EXPECT_TRUE(many.starts_with("*100\r\n$1\r\na\r\n"));
}

TEST(CommandWriterTest, a_command_is_appended) {
  std::string out = "+";
  const std::string_view words[] = {"A"};
  append_command(out, words);
  append_command(out, words);
  EXPECT_EQ(out, "+*1\r\n$1\r\nA\r\n*1\r\n$1\r\nA\r\n");
}

}  // namespace redlatch::resp
