// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"redlatch.io/redlatch/internal/rlc"
)

var logMutex sync.Mutex
var stopLog = func() {}

// LogTo writes what no call reports to logger: outages, lost locks (as errors), slower waiting. The
// library has one log for the process, so that another LogTo takes the place of the one before.
// Without it, nothing is ever written. stop ends it, after the
// line that is being written.
func LogTo(logger *slog.Logger) (stop func()) {
	logMutex.Lock()
	defer logMutex.Unlock()
	stopLog()
	lines := &logLines{logger: logger}
	lines.watch()
	stopLog = lines.stop
	return lines.stop
}

type logLines struct {
	pump   pump
	logger *slog.Logger

	mu      sync.Mutex
	tag     int64
	stopped bool
}

// watch is told once, until all lines were taken.
func (l *logLines) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.tag, _ = l.pump.watch(func(queue rlc.Queue, tag int64) int {
		return rlc.Log_watch(rlc.RL_LOG_INFO, queue, tag)
	}, l.write)
}

func (l *logLines) write() {
	for {
		line := l.next()
		if line == "" {
			break
		}
		kind, message, _ := strings.Cut(line, " ")
		l.logger.Log(context.Background(), levelOf(kind), message, "source", "redlatch")
	}
	l.watch()
}

// next is the oldest line; none after stop, when they are those of another.
func (l *logLines) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return ""
	}
	return text(func(buffer []byte) int64 { return rlc.Log_next(buffer) })
}

func (l *logLines) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.stopped = true
	rlc.Log_watch(rlc.RL_LOG_INFO, 0, 0)
	l.pump.forget(l.tag)
	l.pump.close()
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
