// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster/words.h"

#include "base/message.h"

namespace redlatch::cluster::words {

std::string host_not_named(Text host) noexcept {
  return message_of(
      {"cluster_hosts must name all nodes of the cluster (got a node at ", Quoted{host}, ")"});
}

std::string too_many_nodes(int64_t most) noexcept {
  return message_of(
      {"a client can use ", most, " nodes, and the cluster has named more: make a new client"});
}

std::string unserved(const Settings &cluster, Text why) noexcept {
  return message_of({&cluster, ": ", why});
}

}  // namespace redlatch::cluster::words
