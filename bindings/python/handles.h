// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Handles of the C ABI as objects of Python, and what the functions of module.cc need around a
// call: the GIL, bytes and texts.
#pragma once

#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "redlatch/redlatch.h"

namespace redlatch::python {

namespace py = pybind11;

// Not py::gil_scoped_release: a daemon thread that is still waiting when the interpreter ends is
// unwound by PyEval_RestoreThread(), which a destructor does not survive.
template <class Body>
auto without_gil(const Body &body) {
  PyThreadState *const state = PyEval_SaveThread();
  const auto result = body();
  PyEval_RestoreThread(state);
  return result;
}

template <class Body>
void run_without_gil(const Body &body) {
  without_gil([&] { return body(), 0; });
}

enum class Freeing { kMayWait, kNeverWaits };

// Python's object around a handle. It ends with the object, or before, by reset().
template <class T, void (*Free)(T *), Freeing freeing = Freeing::kNeverWaits>
class Handle {
 public:
  explicit Handle(T *handle) : handle_(handle) {}
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { reset(); }

  T *get() const { return handle_; }
  void reset() {
    T *const handle = std::exchange(handle_, nullptr);
    if (handle == nullptr) return;
    if constexpr (freeing == Freeing::kMayWait) {
      run_without_gil([&] { Free(handle); });
    } else {
      Free(handle);
    }
  }

 private:
  T *handle_;
};

using Error = Handle<rl_error, rl_error_free>;
using ClientOptions = Handle<rl_client_options, rl_client_options_free>;
using AcquireOptions = Handle<rl_acquire_options, rl_acquire_options_free>;
using Client = Handle<rl_client, rl_client_close, Freeing::kMayWait>;
using Lease = Handle<rl_lease, rl_lease_free>;
using Request = Handle<rl_request, rl_request_free>;
using Queue = Handle<rl_queue, rl_queue_free>;
using List = Handle<rl_list, rl_list_free>;
using Names = Handle<rl_names, rl_names_free>;

// An rl_info of its own, or the row of a list, which is read before the list goes on.
class Info {
 public:
  explicit Info(rl_info *owned) : info_(owned), owned_(owned) {}
  explicit Info(const rl_info *row) : info_(row), owned_(nullptr) {}
  const rl_info *get() const { return info_; }

 private:
  const rl_info *info_;
  Handle<rl_info, rl_info_free> owned_;
};

// None for NULL.
template <class Object, class T>
std::unique_ptr<Object> wrap(T *handle) {
  return handle == nullptr ? nullptr : std::make_unique<Object>(handle);
}

template <class Object>
auto get(const Object &object) {
  return object.get();
}

// Options may be None: NULL, all defaults.
template <class Object>
auto get(const Object *object) {
  return object == nullptr ? nullptr : object->get();
}

// Bytes, which the caller's frame keeps alive.
struct Text {
  explicit Text(const py::bytes &bytes) {
    const auto view = static_cast<std::string_view>(bytes);
    data = view.data();
    size = view.size();
  }
  const char *data;
  size_t size;
};

// What `write` puts into a buffer, whose full length it returns.
template <class Write>
py::bytes read_text(const Write &write) {
  std::string text(255, '\0');
  size_t size = write(text.data(), text.size() + 1);
  while (size > text.size()) {
    text.resize(size);
    size = write(text.data(), text.size() + 1);
  }
  return py::bytes(text.data(), size);
}

// A message quotes what it was given, which need not be UTF-8.
inline py::str read_message(const char *message) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(message, static_cast<py::ssize_t>(std::strlen(message)), "replace"));
}

}  // namespace redlatch::python
