// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"

	"redlatch.io/redlatch/internal/rlc"
)

// LogTo writes background events to logger: outages, lost locks (as errors), slower waiting. Each
// client has its own log; another LogTo of this client replaces this one. Without LogTo only one
// line is written, to slog.Default(): a goroutine has waited 10 s for a lock that this client
// holds.
//
// stop ends it, and does not wait for the line that is being written. Close ends it after the last
// line: so the logger must not call Close, nor wait for a goroutine that does.
func (c *base) LogTo(logger *slog.Logger) (stop func()) {
	defer runtime.KeepAlive(c)
	lines := &logLines{client: c.handle, logger: logger}
	if before := c.common.lines.Swap(lines); before != nil {
		before.stop()
	}
	lines.watch()
	return lines.stop
}

// logLines has the handle of its client only, so that the client can be collected, which stops it.
type logLines struct {
	pump   pump
	client rlc.Client
	logger *slog.Logger

	writing sync.Mutex // Close waits for the line that the pump's goroutine is writing
	mu      sync.Mutex
	tag     int64
	stopped bool
}

// watch has write called once, until all lines were taken.
func (l *logLines) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.tag, _ = l.pump.watch(func(queue rlc.Queue, tag int64) int {
		return rlc.Client_log_watch(l.client, rlc.RL_LOG_INFO, queue, tag)
	}, func() {
		l.writeAll()
		l.watch()
	})
}

func (l *logLines) writeAll() {
	l.writing.Lock()
	defer l.writing.Unlock()
	for line := l.next(); line != ""; line = l.next() {
		kind, message, _ := strings.Cut(line, " ")
		l.logger.Log(context.Background(), levelOf(kind), message, "source", "redlatch")
	}
}

// warn writes text, and reports false after stop.
func (l *logLines) warn(text string) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	stopped := l.stopped
	l.mu.Unlock()
	if !stopped {
		l.logger.Warn(text, "source", "redlatch")
	}
	return !stopped
}

// next is the oldest line; none after stop.
func (l *logLines) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return ""
	}
	return text(func(buffer []byte) int64 { return rlc.Client_log_next(l.client, buffer) })
}

func (l *logLines) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.stopped = true
	l.pump.forget(l.tag)
	l.pump.close() // which ends the watch, as the queue is freed
}

func levelOf(kind string) slog.Level {
	switch kind {
	case "error":
		return slog.LevelError
	case "warning":
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
