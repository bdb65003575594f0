// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Parts: what a Runtime consists of. A part owns its data and calls only those above it here; each
// keeps references to those that it calls. The mutex of Wakeup guards all of them.
#pragma once

namespace redlatch::runtime {

class Wakeup;
class Alarm;
class Service;
class Links;
class Shutdown;
class Polling;
class Logins;
class Transfer;
class Roles;
class SideConnections;
class Confirming;
class Sentinels;
class Connecting;

struct Parts {
  Wakeup &wakeup;          // the mutex, threads that sleep, tags of completions, the log
  Alarm &alarm;            // when the background thread wakes
  Service &service;        // the LockService
  Links &links;            // a connection to each server
  Shutdown &shutdown;      // how far the shutdown is
  Polling &polling;        // which thread polls which descriptor
  Logins &logins;          // passwords that change
  Transfer &transfer;      // receiving and sending
  Roles &roles;            // the threads that read
  SideConnections &sides;  // connections that only the background thread uses
  Confirming &confirming;  // those on which replicas confirm
  Sentinels &sentinels;    // those to sentinels
  Connecting &connecting;  // attempts to connect
};

}  // namespace redlatch::runtime
