// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Settings of a client, given when it is opened, and of an acquisition. Made by core/config from
// the URL and the options; constant afterwards. Each row of options.def is a field here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/password.h"

namespace redlatch {

// The field of an option, by its kind: it has the default.
#define RL_FIELD_TEXT(field, initial) std::string field = initial;
#define RL_FIELD_DURATION(field, initial) Nanos field = (initial)*kMs;
#define RL_FIELD_COUNT(field, initial) int field = initial;
#define RL_FIELD_SWITCH(field, initial) bool field = (initial) != 0;
#define RL_FIELD_CHOICE(field, initial) uint8_t field = initial;
#define RL_FIELD_PRIVATE RL_FIELD_TEXT
#define RL_FIELD_PASSWORD(field, initial) Password field = initial;
#define RL_FIELD_PASSWORD_FILE RL_FIELD_TEXT
#define RL_FIELD_PREFIX RL_FIELD_TEXT
#define RL_FIELD_PRINTABLE RL_FIELD_TEXT
#define RL_FIELD_HOST RL_FIELD_TEXT
#define RL_FIELD_PROGRAM RL_FIELD_TEXT
#define RL_FIELD_FILE RL_FIELD_TEXT
#define RL_FIELD_FILE_OR_FOLDER RL_FIELD_TEXT
#define RL_FIELD(name, field, KIND, least, most, initial, ...) RL_FIELD_##KIND(field, initial)

// The address of a TCP server.
struct HostPort {
  std::string host;
  std::string port;

  bool operator==(const HostPort &) const = default;
  std::string text() const {
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return (is_ipv6 ? "[" + host + "]" : host) + ":" + port;
  }
};

// For a server that is reached over TLS. Paths are absolute.
struct TlsSettings {
  // The words of tls_verify, by their places.
  enum Verify : uint8_t {
    kFull,  // a trusted authority has signed the certificate, and it is for this host
    kCa,    // a trusted authority has signed the certificate
    kNone,
  };
  bool is_on = false;
  bool is_asked_for = false;  // a TLS option is set, which without is_on is an error
  bool is_of_sentinels = false;
#define RL_TLS_OPTION RL_FIELD
#include "config/options.def"

  // The name of an option for messages.
  std::string option(const std::string &name) const {
    return is_of_sentinels ? "sentinel_" + name : name;
  }
};

// For the sentinels that know the address of the server. They get no setting of the server.
struct SentinelSettings {
  std::vector<HostPort> addresses;  // empty: the URL names the server itself
  std::string primary_name;         // what the sentinels call the server
  TlsSettings tls{.is_of_sentinels = true};
  bool is_asked_for = false;            // an option of sentinels is set
  bool is_password_read_again = false;  // from password_file, for each connection
#define RL_SENTINEL_OPTION RL_FIELD
#include "config/options.def"
};

// For a cluster, whose nodes name each other. All other settings are for each node.
struct ClusterSettings {
  std::vector<HostPort> addresses;  // of some nodes; empty: the URL names one server
  bool is_asked_for = false;        // an option of clusters is set
#define RL_CLUSTER_OPTION RL_FIELD
#include "config/options.def"

  // True if a node may name `host` as that of another node.
  bool allows(std::string_view host) const {
    if (allowed_hosts.empty()) return true;
    std::string_view list = allowed_hosts;
    while (list.substr(0, list.find(',')) != host) {
      const size_t comma = list.find(',');
      if (comma == list.npos) return false;
      list.remove_prefix(comma + 1);
    }
    return true;
  }
};

// The socket in the folder of an embedded server.
inline constexpr std::string_view kSocketFile = "socket";

struct Settings {
  // For a TCP server; empty for unix sockets, for a cluster, and while sentinels know it.
  std::string host;
  std::string port = "6379";
  std::string socket_path;  // of a unix socket
  std::string folder;       // of an embedded server, whose socket_path is in it
  TlsSettings tls;
  SentinelSettings sentinel;
  ClusterSettings cluster;
  bool is_of_sentinel = false;          // the server is itself a sentinel
  bool is_of_primary = false;           // sentinels have named the server, which has to confirm it
  bool is_of_cluster = false;           // the server is a node of a cluster
  std::string shown_url;                // the URL as it was given, without secrets
  bool is_password_read_again = false;  // from password_file, for each connection
#define RL_CLIENT_OPTION RL_FIELD
#include "config/options.def"

  // The server as messages show it, without user and password.
  std::string address() const {
    if (!folder.empty()) return "embedded://" + folder;
    if (!socket_path.empty()) return "unix://" + socket_path;
    if (is_of_sentinel) return "sentinel " + HostPort{host, port}.text();
    if (is_cluster()) return scheme() + "+cluster://" + list_of(cluster.addresses);
    if (!has_sentinels()) return scheme() + "://" + HostPort{host, port}.text();
    return scheme() + "-sentinel://" + list_of(sentinel.addresses) + "/" + sentinel.primary_name;
  }

  bool has_sentinels() const { return !sentinel.addresses.empty(); }
  // For the primary that sentinels have named.
  Settings of_primary(const HostPort &primary) const {
    Settings settings = *this;
    settings.sentinel = {};
    settings.host = primary.host;
    settings.port = primary.port;
    settings.is_of_primary = true;
    return settings;
  }
  bool is_cluster() const { return !cluster.addresses.empty(); }
  // For one node of the cluster.
  Settings of_node(const HostPort &node) const {
    Settings settings = *this;
    settings.cluster = {};
    settings.host = node.host;
    settings.port = node.port;
    settings.is_of_cluster = true;
    return settings;
  }
  // For a sentinel. Its user, password and TLS are not those of the server.
  Settings of_sentinel(const HostPort &address) const {
    Settings settings;
    settings.host = address.host;
    settings.port = address.port;
    settings.tls = sentinel.tls;
    settings.is_of_sentinel = true;
    settings.user = sentinel.user;
    settings.password = sentinel.password;
    settings.password_file = sentinel.password_file;
    settings.is_password_read_again = sentinel.is_password_read_again;
    settings.client_name = client_name;
    settings.connect_timeout = connect_timeout;
    settings.command_timeout = command_timeout;
    return settings;
  }

 private:
  std::string scheme() const { return tls.is_on ? "rediss" : "redis"; }
  static std::string list_of(const std::vector<HostPort> &addresses) {
    std::string list;
    for (const HostPort &one : addresses) list += (list.empty() ? "" : ",") + one.text();
    return list;
  }
};

// Settings of a Redlock, beside those of each of its nodes.
struct QuorumSettings {
#define RL_QUORUM_OPTION RL_FIELD
#include "config/options.def"
};

// Settings of an acquisition. A count may have a default below its range: the library chooses.
struct AcquireSettings {
#define RL_ACQUIRE_OPTION RL_FIELD
#define RL_LOCK_OPTION RL_FIELD
#define RL_KIND_OPTION RL_FIELD
#include "config/options.def"
};

#undef RL_FIELD
#undef RL_FIELD_TEXT
#undef RL_FIELD_DURATION
#undef RL_FIELD_COUNT
#undef RL_FIELD_SWITCH
#undef RL_FIELD_CHOICE
#undef RL_FIELD_PASSWORD_FILE
#undef RL_FIELD_PRIVATE
#undef RL_FIELD_PASSWORD
#undef RL_FIELD_PREFIX
#undef RL_FIELD_PRINTABLE
#undef RL_FIELD_HOST
#undef RL_FIELD_PROGRAM
#undef RL_FIELD_FILE
#undef RL_FIELD_FILE_OR_FOLDER

}  // namespace redlatch
