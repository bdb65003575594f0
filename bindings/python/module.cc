// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// redlatch._core: the C ABI as Python sees it, function by function, and nothing decided here. What
// it means is in redlatch.h; what Python makes of it is in python/src/redlatch. Whatever may send
// or wait does so without the GIL.
#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include <array>
#include <memory>

#include "handles.h"
#include "redlatch/redlatch.h"

namespace py = pybind11;

using namespace redlatch::python;

namespace {

void bind_handles(py::module_ &m) {
  py::class_<Error>(m, "Error");
  py::class_<ClientOptions>(m, "ClientOptions");
  py::class_<AcquireOptions>(m, "AcquireOptions");
  py::class_<Client>(m, "Client");
  py::class_<Lease>(m, "Lease");
  py::class_<Request>(m, "Request");
  py::class_<Queue>(m, "Queue");
  py::class_<Info>(m, "Info");
  py::class_<List>(m, "List");
  py::class_<Names>(m, "Names");
  m.def("error_new", [] { return wrap<Error>(rl_error_new()); });
  m.def("error_status", [](const Error &e) { return rl_error_status(get(e)); });
  m.def("error_message", [](const Error &e) { return read_message(rl_error_message(get(e))); });
  m.def("version", &rl_version);
  m.def("status_text", &rl_status_text);
  m.def("status_is", &rl_status_is);
  m.def("constant", [](const py::bytes &name, int32_t if_unknown) {
    return rl_constant(Text(name).data, Text(name).size, if_unknown);
  });
  m.def("nearest_word", [](const py::bytes &word, const py::bytes &words) {
    return read_text([w = Text(word), all = Text(words)](auto... b) {
      return rl_nearest_word(w.data, w.size, all.data, all.size, b...);
    });
  });
}

void bind_options(py::module_ &m) {
  m.def("client_options_new", [] { return wrap<ClientOptions>(rl_client_options_new()); });
  m.def("client_options_set",
        [](ClientOptions &o, const py::bytes &name, const py::bytes &value, Error &e) {
          const Text n(name), v(value);
          return rl_client_options_set(get(o), n.data, n.size, v.data, v.size, get(e));
        });
  m.def("client_options_set_from_env",
        [](ClientOptions &o, Error &e) { return rl_client_options_set_from_env(get(o), get(e)); });
  m.def("acquire_options_new", [] { return wrap<AcquireOptions>(rl_acquire_options_new()); });
  m.def("acquire_options_set",
        [](AcquireOptions &o, const py::bytes &name, const py::bytes &value, Error &e) {
          const Text n(name), v(value);
          return rl_acquire_options_set(get(o), n.data, n.size, v.data, v.size, get(e));
        });
}

void bind_client(py::module_ &m) {
  m.def("client_open", [](const py::bytes &url, const ClientOptions *options, Error &e) {
    return wrap<Client>(rl_client_open(Text(url).data, Text(url).size, get(options), get(e)));
  });
  m.def("redlock_open", [](const py::bytes &urls, const ClientOptions *options, Error &e) {
    return wrap<Client>(rl_redlock_open(Text(urls).data, Text(urls).size, get(options), get(e)));
  });
  m.def("client_connect", [](Client &client, int64_t wait_ms, Error &e) {
    return without_gil([&] { return rl_client_connect(get(client), wait_ms, get(e)); });
  });
  m.def("client_shutdown",
        [](Client &client) { run_without_gil([&] { rl_client_shutdown(get(client)); }); });
  m.def("client_info",
        [](Client &client, Error &e) { return wrap<Info>(rl_client_info(get(client), get(e))); });
  m.def("client_check", [](Client &client, int64_t wait_ms, Error &e) {
    return wrap<Info>(without_gil([&] { return rl_client_check(get(client), wait_ms, get(e)); }));
  });
  m.def("client_log_next", [](Client &client) {
    return read_text([&](auto... b) { return rl_client_log_next(get(client), b...); });
  });
  m.def("client_credentials_watch", [](Client &client, Queue &queue, int64_t tag) {
    return rl_client_credentials_watch(get(client), get(queue), tag);
  });
  m.def("client_credentials_set", [](Client &client, const py::bytes &user,
                                     const py::bytes &password, int64_t valid_ms, Error &e) {
    return without_gil([&, u = Text(user), p = Text(password)] {
      return rl_client_credentials_set(get(client), u.data, u.size, p.data, p.size, valid_ms,
                                       get(e));
    });
  });
  m.def("client_credentials_fail", [](Client &client, const py::bytes &reason, Error &e) {
    return without_gil([&, r = Text(reason)] {
      return rl_client_credentials_fail(get(client), r.data, r.size, get(e));
    });
  });
  m.def("client_option", [](const Client &client, const py::bytes &name) {
    return read_text([&client, t = Text(name)](auto... b) {
      return rl_client_option(get(client), t.data, t.size, b...);
    });
  });
  m.def("force_release",
        [](Client &client, const py::bytes &name, const py::bytes &token, Error &e) {
          return without_gil([&, n = Text(name), t = Text(token)] {
            return rl_force_release(get(client), n.data, n.size, t.data, t.size, get(e));
          });
        });
  m.def("force_release_any", [](Client &client, const py::bytes &name, Error &e) {
    return without_gil(
        [&, n = Text(name)] { return rl_force_release_any(get(client), n.data, n.size, get(e)); });
  });
}

// Starting and the first wait go together: giving the GIL up twice costs twice when others compute.
template <class Start>
std::unique_ptr<Request> driven(int64_t drive_ms, const Start &start) {
  return wrap<Request>(without_gil([&] {
    auto *request = start();
    if (drive_ms != 0) rl_request_wait(request, drive_ms);
    return request;
  }));
}

// rl_acquire_start() and its twins.
using AcquireStart = rl_request *(rl_client *, const char *, size_t, int64_t,
                                  const rl_acquire_options *);

void bind_acquire(py::module_ &m, const char *function, AcquireStart *start) {
  m.def(function, [start](Client &from, const py::bytes &name, int64_t wait_ms,
                          const AcquireOptions *options, int64_t drive_ms) {
    return driven(drive_ms, [&, n = Text(name)] {
      return start(get(from), n.data, n.size, wait_ms, get(options));
    });
  });
}

void bind_requests(py::module_ &m) {
  bind_acquire(m, "acquire_start", rl_acquire_start);
  bind_acquire(m, "rw_acquire_read_start", rl_rw_acquire_read_start);
  bind_acquire(m, "rw_acquire_write_start", rl_rw_acquire_write_start);
  m.def("rw_upgrade_start", [](Lease &lease, int64_t wait_ms, int64_t drive_ms) {
    return driven(drive_ms, [&] { return rl_rw_upgrade_start(get(lease), wait_ms); });
  });
  m.def("rw_downgrade", [](Lease &lease, Error &e) {
    return without_gil([&] { return rl_rw_downgrade(get(lease), get(e)); });
  });
  m.def("release", [](Lease &lease, Error &e) {
    return without_gil([&] { return rl_release(get(lease), get(e)); });
  });
  m.def("extend", [](Lease &lease, int64_t ttl_ms, Error &e) {
    return without_gil([&] { return rl_extend(get(lease), ttl_ms, get(e)); });
  });
  m.def("request_wait", [](Request &request, int64_t wait_ms) {
    return without_gil([&] { return rl_request_wait(get(request), wait_ms); });
  });
  m.def("request_status", [](const Request &request) { return rl_request_status(get(request)); });
  m.def("request_message",
        [](const Request &request) { return read_message(rl_request_message(get(request))); });
  m.def("request_take_lease",
        [](Request &request) { return wrap<Lease>(rl_request_take_lease(get(request))); });
  m.def("request_take_info",
        [](Request &request) { return wrap<Info>(rl_request_take_info(get(request))); });
  m.def("request_free", [](Request &request) { request.reset(); });
}

// For an event loop: `tag` is posted when `request` is finished, unless it is already. What starts
// a request never waits, so it keeps the GIL: giving it up might cost a turn of another thread.
std::unique_ptr<Request> watched(rl_request *request, Queue &queue, int64_t tag) {
  auto result = wrap<Request>(request);
  if (result == nullptr || rl_request_status(request) != RL_PENDING) return result;
  if (rl_request_watch(request, get(queue), tag) != RL_OK) return nullptr;  // which cancels it
  return result;
}

void bind_acquire_watched(py::module_ &m, const char *function, AcquireStart *start) {
  m.def(function, [start](Client &from, const py::bytes &name, int64_t wait_ms,
                          const AcquireOptions *options, Queue &queue, int64_t tag) {
    const Text n(name);
    return watched(start(get(from), n.data, n.size, wait_ms, get(options)), queue, tag);
  });
}

// rl_inspect() and other questions about a name, and their forms for an event loop.
void bind_name(py::module_ &m, const char *function,
               rl_info *(*ask)(rl_client *, const char *, size_t, rl_error *)) {
  m.def(function, [ask](Client &client, const py::bytes &name, Error &e) {
    return wrap<Info>(
        without_gil([&, n = Text(name)] { return ask(get(client), n.data, n.size, get(e)); }));
  });
}

void bind_name_watched(py::module_ &m, const char *function,
                       rl_request *(*start)(rl_client *, const char *, size_t)) {
  m.def(function, [start](Client &client, const py::bytes &name, Queue &queue, int64_t tag) {
    const Text n(name);
    return watched(start(get(client), n.data, n.size), queue, tag);
  });
}

void bind_queues(py::module_ &m) {
  m.def("queue_new", [](Error &e) { return wrap<Queue>(rl_queue_new(get(e))); });
  m.def("queue_fd", [](const Queue &queue) { return rl_queue_fd(get(queue)); });
  m.def("queue_take", [](Queue &queue) {
    py::typing::List<py::int_> tags;
    while (const int64_t tag = rl_queue_next(get(queue), 0)) tags.append(tag);
    return tags;
  });
  m.def("queue_wait",
        [](Queue &queue) { return without_gil([&] { return rl_queue_next(get(queue), -1); }); });
  m.def("queue_post", [](Queue &queue, int64_t tag) { return rl_queue_post(get(queue), tag); });
  bind_acquire_watched(m, "acquire_watched", rl_acquire_start);
  bind_acquire_watched(m, "rw_acquire_read_watched", rl_rw_acquire_read_start);
  bind_acquire_watched(m, "rw_acquire_write_watched", rl_rw_acquire_write_start);
  m.def("rw_upgrade_watched", [](Lease &lease, int64_t wait_ms, Queue &queue, int64_t tag) {
    return watched(rl_rw_upgrade_start(get(lease), wait_ms), queue, tag);
  });
  m.def("rw_downgrade_watched", [](Lease &lease, Queue &queue, int64_t tag) {
    return watched(rl_rw_downgrade_start(get(lease)), queue, tag);
  });
  m.def("release_watched", [](Lease &lease, Queue &queue, int64_t tag) {
    return watched(rl_release_start(get(lease)), queue, tag);
  });
  m.def("extend_watched", [](Lease &lease, int64_t ttl_ms, Queue &queue, int64_t tag) {
    return watched(rl_extend_start(get(lease), ttl_ms), queue, tag);
  });
  m.def("lease_detach_watched", [](Lease &lease, Queue &queue, int64_t tag) {
    return watched(rl_lease_detach_start(get(lease)), queue, tag);
  });
  m.def("lease_attach_watched", [](Client &client, const py::bytes &name, const py::bytes &token,
                                   int64_t fence, const AcquireOptions *options, Queue &queue,
                                   int64_t tag) {
    const Text n(name), t(token);
    return watched(
        rl_lease_attach_start(get(client), n.data, n.size, t.data, t.size, fence, get(options)),
        queue, tag);
  });
  bind_name_watched(m, "inspect_watched", rl_inspect_start);
  m.def("list_next_watched", [](List &list, Queue &queue, int64_t tag) {
    return watched(rl_list_next_start(get(list)), queue, tag);
  });
  m.def("force_release_watched", [](Client &client, const py::bytes &name, const py::bytes &token,
                                    Queue &queue, int64_t tag) {
    const Text n(name), t(token);
    return watched(rl_force_release_start(get(client), n.data, n.size, t.data, t.size), queue, tag);
  });
  bind_name_watched(m, "force_release_any_watched", rl_force_release_any_start);
  m.def("client_connect_watched", [](Client &client, int64_t wait_ms, Queue &queue, int64_t tag) {
    return watched(rl_client_connect_start(get(client), wait_ms), queue, tag);
  });
  m.def("client_check_watched", [](Client &client, int64_t wait_ms, Queue &queue, int64_t tag) {
    return watched(rl_client_check_start(get(client), wait_ms), queue, tag);
  });
  m.def("lease_watch", [](Lease &lease, Queue &queue, int64_t tag) {
    return rl_lease_watch(get(lease), get(queue), tag);
  });
  m.def("client_log_watch", [](Client &client, int32_t level, Queue &queue, int64_t tag) {
    return rl_client_log_watch(get(client), level, get(queue), tag);
  });
}

void bind_lease(py::module_ &m) {
  m.def("lease_attach", [](Client &client, const py::bytes &name, const py::bytes &token,
                           int64_t fence, const AcquireOptions *options, Error &e) {
    return wrap<Lease>(without_gil([&, n = Text(name), t = Text(token)] {
      return rl_lease_attach(get(client), n.data, n.size, t.data, t.size, fence, get(options),
                             get(e));
    }));
  });
  m.def("lease_detach", [](Lease &lease, Error &e) {
    return without_gil([&] { return rl_lease_detach(get(lease), nullptr, 0, get(e)); });
  });
  m.def("lease_state", [](const Lease &lease) { return rl_lease_state(get(lease)); });
  m.def("lease_remaining_ms", [](const Lease &lease) { return rl_lease_remaining_ms(get(lease)); });
  m.def("lease_fence", [](const Lease &lease) { return rl_lease_fence(get(lease)); });
  m.def("lease_mode", [](const Lease &lease) { return rl_lease_mode(get(lease)); });
  m.def("lease_hold_count", [](const Lease &lease) { return rl_lease_hold_count(get(lease)); });
  m.def("lease_name", [](const Lease &lease) {
    return read_text([&](auto... b) { return rl_lease_name(get(lease), b...); });
  });
  m.def("lease_token", [](const Lease &lease) {
    return read_text([&](auto... b) { return rl_lease_token(get(lease), b...); });
  });
  m.def("lease_lost_reason", [](const Lease &lease) { return rl_lease_lost_reason(get(lease)); });
  m.def("lease_lost_text", [](const Lease &lease) {
    return read_text([&](auto... b) { return rl_lease_lost_text(get(lease), b...); });
  });
  m.def("lease_check", [](const Lease &lease, Error &e) {
    return without_gil([&] { return rl_lease_check(get(lease), get(e)); });
  });
  m.def("lease_wait_lost", [](Lease &lease, int64_t wait_ms) {
    return without_gil([&] { return rl_lease_wait_lost(get(lease), wait_ms); });
  });
}

void bind_semaphore(py::module_ &m) {
  m.def("lease_permits", [](const Lease &lease) { return rl_lease_permits(get(lease)); });
  bind_name(m, "semaphore_stats", rl_semaphore_stats);
  bind_name_watched(m, "semaphore_stats_watched", rl_semaphore_stats_start);
}

void bind_once(py::module_ &m) {
  m.def("once_begin_start",
        [](Lease &lease, const py::bytes &key, int64_t every_ms, int32_t tries, int64_t drive_ms) {
          return driven(drive_ms, [&, k = Text(key)] {
            return rl_once_begin_start(get(lease), k.data, k.size, every_ms, tries);
          });
        });
  m.def("once_begin_watched", [](Lease &lease, const py::bytes &key, int64_t every_ms,
                                 int32_t tries, Queue &queue, int64_t tag) {
    const Text k(key);
    return watched(rl_once_begin_start(get(lease), k.data, k.size, every_ms, tries), queue, tag);
  });
  m.def("once_done", [](Lease &lease, const py::bytes &key, Error &e) {
    return without_gil(
        [&, k = Text(key)] { return rl_once_done(get(lease), k.data, k.size, get(e)); });
  });
  m.def("once_done_watched", [](Lease &lease, const py::bytes &key, Queue &queue, int64_t tag) {
    const Text k(key);
    return watched(rl_once_done_start(get(lease), k.data, k.size), queue, tag);
  });
  m.def("once_forget", [](Client &client, const py::bytes &name, Error &e) {
    return without_gil(
        [&, n = Text(name)] { return rl_once_forget(get(client), n.data, n.size, get(e)); });
  });
  bind_name_watched(m, "once_forget_watched", rl_once_forget_start);
}

void bind_flights(py::module_ &m) {
  bind_acquire(m, "flight_start", rl_flight_start);
  bind_acquire_watched(m, "flight_watched", rl_flight_start);
  m.def("flight_value", [](const Request &request) {
    return read_text([r = get(request)](char *buffer, size_t size) {
      const size_t length = rl_flight_value(r, buffer, size);
      return length == RL_NO_TEXT ? 0 : length;
    });
  });
  m.def("flight_has_failed",
        [](const Request &request) { return rl_flight_has_failed(get(request)); });
  m.def("flight_failure_type", [](const Request &request) {
    return read_text([&](auto... b) { return rl_flight_failure_type(get(request), b...); });
  });
  m.def("flight_store", [](Lease &lease, const py::bytes &value, int64_t ttl_ms, Error &e) {
    return without_gil([&, v = Text(value)] {
      return rl_flight_store(get(lease), v.data, v.size, ttl_ms, get(e));
    });
  });
  m.def("flight_store_watched",
        [](Lease &lease, const py::bytes &value, int64_t ttl_ms, Queue &queue, int64_t tag) {
          const Text v(value);
          return watched(rl_flight_store_start(get(lease), v.data, v.size, ttl_ms), queue, tag);
        });
  m.def("flight_fail", [](Lease &lease, const py::bytes &type, const py::bytes &text, Error &e) {
    return without_gil([&, k = Text(type), t = Text(text)] {
      return rl_flight_fail(get(lease), k.data, k.size, t.data, t.size, get(e));
    });
  });
  m.def("flight_fail_watched", [](Lease &lease, const py::bytes &type, const py::bytes &text,
                                  Queue &queue, int64_t tag) {
    const Text k(type), t(text);
    return watched(rl_flight_fail_start(get(lease), k.data, k.size, t.data, t.size), queue, tag);
  });
}

void bind_elections(py::module_ &m) {
  bind_name(m, "leader", rl_leader);
  bind_name_watched(m, "leader_watched", rl_leader_start);
  m.def("leader_watch_start",
        [](Client &client, const py::bytes &name, int64_t seen, int64_t wait_ms, int64_t drive_ms) {
          return driven(drive_ms, [&, n = Text(name)] {
            return rl_leader_watch_start(get(client), n.data, n.size, seen, wait_ms);
          });
        });
  m.def("leader_watch_watched", [](Client &client, const py::bytes &name, int64_t seen,
                                   int64_t wait_ms, Queue &queue, int64_t tag) {
    const Text n(name);
    return watched(rl_leader_watch_start(get(client), n.data, n.size, seen, wait_ms), queue, tag);
  });
}

void bind_recalls(py::module_ &m) {
  m.def("recall", [](Client &client, const py::bytes &name, const py::bytes &reason, Error &e) {
    return without_gil([&, n = Text(name), r = Text(reason)] {
      int64_t heard = 0;
      rl_recall(get(client), n.data, n.size, r.data, r.size, &heard, get(e));
      return heard;
    });
  });
  m.def("recall_watched", [](Client &client, const py::bytes &name, const py::bytes &reason,
                             Queue &queue, int64_t tag) {
    const Text n(name), r(reason);
    return watched(rl_recall_start(get(client), n.data, n.size, r.data, r.size), queue, tag);
  });
  m.def("recall_heard", [](const Request &request) { return rl_recall_heard(get(request)); });
  m.def("lease_watch_recall", [](Lease &lease, Queue &queue, int64_t tag) {
    return rl_lease_watch_recall(get(lease), get(queue), tag);
  });
  m.def("lease_recall_count", [](const Lease &lease) { return rl_lease_recall_count(get(lease)); });
  m.def("lease_recall_reason", [](const Lease &lease) {
    return read_text([&](auto... b) { return rl_lease_recall_reason(get(lease), b...); });
  });
}

void bind_names(py::module_ &m) {
  m.def("names_new", [] { return wrap<Names>(rl_names_new()); });
  m.def("names_add", [](Names &names, const py::bytes &name, int32_t mode, Error &e) {
    const Text n(name);
    return rl_names_add(get(names), n.data, n.size, mode, get(e));
  });
  m.def("names_add_path", [](Names &names, const py::bytes &path, Error &e) {
    const Text p(path);
    return rl_names_add_path(get(names), p.data, p.size, get(e));
  });
  m.def("acquire_all_start", [](Client &from, const Names &names, int64_t wait_ms,
                                const AcquireOptions *options, int64_t drive_ms) {
    return driven(drive_ms, [&] {
      return rl_acquire_all_start(get(from), get(names), wait_ms, get(options));
    });
  });
  m.def("acquire_all_watched", [](Client &from, const Names &names, int64_t wait_ms,
                                  const AcquireOptions *options, Queue &queue, int64_t tag) {
    return watched(rl_acquire_all_start(get(from), get(names), wait_ms, get(options)), queue, tag);
  });
  m.def("lease_part_fence",
        [](const Lease &lease, int32_t index) { return rl_lease_part_fence(get(lease), index); });
}

void bind_info(py::module_ &m) {
  bind_name(m, "inspect", rl_inspect);
  m.def("info_count",
        [](const Info &info, int32_t part) { return rl_info_count(get(info), part); });
  m.def("info_has", [](const Info &info, int32_t part, int32_t index, int32_t field) {
    return rl_info_has(get(info), part, index, field);
  });
  m.def("info_number", [](const Info &info, int32_t part, int32_t index, int32_t field) {
    return rl_info_number(get(info), part, index, field);
  });
  m.def("info_text", [](const Info &info, int32_t part, int32_t index, int32_t field) {
    return read_text([&](auto... b) { return rl_info_text(get(info), part, index, field, b...); });
  });
  m.def("list_open", [](Client &client, const py::bytes &pattern, Error &e) {
    return wrap<List>(rl_list_open(get(client), Text(pattern).data, Text(pattern).size, get(e)));
  });
  m.def("list_next", [](List &list, Error &e) {
    return without_gil([&] { return rl_list_next(get(list), get(e)); });
  });
  m.def("list_info", [](const List &list) { return wrap<Info>(rl_list_info(get(list))); });
}

}  // namespace

// The module as pybind11 makes it, entered by PyInit__core() below.
// No GIL where Python has none: nothing here is shared but by handles, which any threads may use.
PYBIND11_MODULE(_core_unchecked, m, py::mod_gil_not_used()) {
  m.doc() = "The C ABI of redlatch, function by function. Use the package around it.";
  bind_handles(m);
  bind_options(m);
  bind_client(m);
  bind_requests(m);
  bind_queues(m);
  bind_lease(m);
  bind_semaphore(m);
  bind_once(m);
  bind_flights(m);
  bind_elections(m);
  bind_recalls(m);
  bind_names(m);
  bind_info(m);
}

namespace {

// pybind11 takes the GIL of the main interpreter: in a subinterpreter it would wait for a lock that
// its own thread holds. @return 0, or -1 and an ImportError.
int check_interpreter(PyObject * /*module*/) {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return 0;
  PyErr_SetString(PyExc_ImportError,
                  "redlatch must be imported by the main interpreter of a process (got a "
                  "subinterpreter; mod_wsgi has the setting WSGIApplicationGroup %{GLOBAL})");
  return -1;
}

// A check before all else that is done to a module. From Python 3.13 on PyInit_*() is called by the
// main interpreter for every other one.
bool add_check(PyModuleDef &def) {
  static std::array<PyModuleDef_Slot, 8> slots{};
  if (def.m_slots == slots.data()) return true;
  size_t count = 0;
  slots[count++] = {Py_mod_exec, reinterpret_cast<void *>(check_interpreter)};
  for (const PyModuleDef_Slot *slot = def.m_slots; slot->slot != 0; slot++) {
    if (count + 1 == slots.size()) return false;
    slots[count++] = *slot;
  }
  slots[count] = {};
  def.m_slots = slots.data();
  return true;
}

}  // namespace

extern "C" PYBIND11_EXPORT PyObject *PyInit__core() {
  if (check_interpreter(nullptr) != 0) return nullptr;
  PyObject *def = PyInit__core_unchecked();
  if (def == nullptr || add_check(*reinterpret_cast<PyModuleDef *>(def))) return def;
  PyErr_SetString(PyExc_ImportError, "redlatch._core has more parts than expected");
  return nullptr;
}
