// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// `recall`.
#include "recall.h"

#include <string>

#include "commands.h"
#include "exit_code.h"
#include "json.h"
#include "text.h"

namespace redlatch::cli {

std::int64_t ask_to_finish(const CommandClient& client, const Arguments& arguments) {
  const std::string& name = arguments.names.front();
  const std::string reason = arguments.recall.reason.value_or("");
  std::int64_t heard = 0;
  const rl_status status = rl_recall(client.handle(), name.data(), name.size(), reason.data(),
                                     reason.size(), &heard, client.error());
  if (status != RL_OK) throw client.failure();
  return heard;
}

int recall(const Arguments& arguments, const Log&) {
  const CommandClient client = CommandClient::of_one(arguments, "recall");
  const std::int64_t heard = ask_to_finish(client, arguments);
  const std::string number = std::to_string(heard);
  if (arguments.output == Output::kTsv) {
    write_output(number + "\n");
  } else if (arguments.output == Output::kTable) {
    write_output(number + (heard == 1 ? " holder of " : " holders of ") +
                 lock_words(arguments.names.front()) + " heard the recall\n");
  } else {
    JsonObject object;
    object.number("schema", 1).text("name", arguments.names.front()).number("heard", heard);
    write_output(object.text("server", client.server()).done() + "\n");
  }
  return 0;
}

}  // namespace redlatch::cli
