// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
)

// Later than any record: the end of what has none.
const never = int64(math.MaxInt64)

const ms = int64(1000000)

// One call of the library, from its two records. Times are ns of CLOCK_MONOTONIC.
type op struct {
	kind                  string // acquire, attach, release, extend, upgrade, detach, ..
	process, name, client string
	token                 string
	fence, newFence       int64 // newFence: of an upgrade or a downgrade that was granted
	isRead                bool
	owner                 string
	isReentrant           bool
	holds                 int64 // of the owner, when it was granted; 0 is not said
	waitMs                int64
	lease                 int64 // ns
	burst                 int64
	isRenewed             bool
	isQuorum              bool  // on most of several servers
	isPart                bool  // of a lease of several names
	permits, limit        int64 // of a semaphore; 0 of any other lock
	call, ret             int64
	outcome               string // "open" if there is no return
	untilAtCall, until    int64  // local deadlines as logged; 0 is not held
	gone                  int64  // when the process died, or never
	lines                 []string
}

func (o *op) is(kind, outcome string) bool { return o.kind == kind && o.outcome == outcome }

// group is who may hold a reentrant lock more than once; nobody else may hold it meanwhile.
func (o *op) group() string {
	if !o.isReentrant {
		return ""
	}
	return o.owner
}

// isOneOfSeveral: what became of the others decides as well, whether it is granted or lost.
func (o *op) isOneOfSeveral() bool { return o.isQuorum || o.isPart }

func (o *op) changesMode() bool { return o.kind == "upgrade" || o.kind == "downgrade" }

// Who can be where in the server's queue, or what a lease looked like, at one moment.
type sighting struct {
	process, name, token string
	at, fence, until     int64
	tokens               []string // of a queue, first in line first
	line                 string
}

// All that is known of one lock name.
type history struct {
	name   string
	ops    []*op // in order of their calls
	looks  []*sighting
	queues []*sighting
	end    int64 // the last moment of which anything is known
}

type loader struct {
	calls  map[string]*op
	order  []*op
	sights []*sighting
	gone   map[string]int64
	end    int64
}

type record struct {
	words  []string
	values map[string]string
	err    error
}

func (r *record) text(key string) string {
	text, err := url.PathUnescape(r.values[key])
	if err != nil {
		r.err = err
	}
	return text
}

func (r *record) number(key string) int64 {
	text, isThere := r.values[key]
	if !isThere {
		return 0
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.err = err
	}
	return number
}

func parse(line string) *record {
	r := &record{values: map[string]string{}}
	for _, word := range strings.Fields(line) {
		if key, value, isPair := strings.Cut(word, "="); isPair {
			r.values[key] = value
		} else {
			r.words = append(r.words, word)
		}
	}
	return r
}

// load reads logs and sorts them by lock name.
func load(paths []string) ([]*history, error) {
	l := &loader{calls: map[string]*op{}, gone: map[string]int64{}}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := l.read(path, string(data)); err != nil {
			return nil, err
		}
	}
	return l.histories()
}

func (l *loader) read(source, text string) error {
	lines := strings.SplitAfter(text, "\n")
	for number, line := range lines {
		// The last line of a process that died may be cut.
		if !strings.HasSuffix(line, "\n") || line == "\n" || line[0] == '#' {
			continue
		}
		if err := l.take(strings.TrimSuffix(line, "\n")); err != nil {
			return fmt.Errorf("%s:%d: %w", source, number+1, err)
		}
	}
	return nil
}

func (l *loader) take(line string) error {
	r := parse(line)
	if len(r.words) < 3 {
		return fmt.Errorf("no record: %q", line)
	}
	at, err := strconv.ParseInt(r.words[2], 10, 64)
	if err != nil {
		return err
	}
	l.end = max(l.end, at)
	who := r.words[1]
	switch r.words[0] {
	case "call":
		return l.takeCall(who, at, r, line)
	case "return":
		return l.takeReturn(who, at, r, line)
	case "look", "queue":
		s := &sighting{process: who, name: r.text("name"), token: r.text("token"), at: at,
			fence: r.number("fence"), until: r.number("until"), line: line}
		if r.words[0] == "queue" {
			s.tokens = strings.Split(r.text("tokens"), ",")
		}
		l.sights = append(l.sights, s)
	case "gone":
		l.gone[who] = at
	default:
		return fmt.Errorf("no record: %q", line)
	}
	return r.err
}

func (l *loader) takeCall(id string, at int64, r *record, line string) error {
	if len(r.words) != 4 || l.calls[id] != nil {
		return fmt.Errorf("no operation, or a second one of this number: %q", line)
	}
	process, _, _ := strings.Cut(id, ".")
	o := &op{kind: r.words[3], process: process, name: r.text("name"), client: r.text("client"),
		token: r.text("token"), fence: r.number("fence"), waitMs: r.number("wait_ms"),
		lease: r.number("ttl_ms") * ms, burst: r.number("burst"),
		isRenewed: r.number("renew") != 0, isRead: r.text("mode") == "read",
		owner: r.text("owner"), isReentrant: r.number("reentrant") != 0,
		isQuorum: r.number("quorum") != 0, isPart: r.number("part") != 0,
		permits: r.number("permits"), limit: r.number("limit"),
		call: at, ret: never, outcome: "open",
		untilAtCall: r.number("until"), gone: never, lines: []string{line}}
	l.calls[id] = o
	l.order = append(l.order, o)
	return r.err
}

func (l *loader) takeReturn(id string, at int64, r *record, line string) error {
	o := l.calls[id]
	if o == nil || len(r.words) != 4 || at < o.call {
		return fmt.Errorf("a return without a call before it: %q", line)
	}
	if o.outcome != "open" {
		return fmt.Errorf("a second return: %q", line)
	}
	o.ret, o.outcome = at, r.words[3]
	o.lines = append(o.lines, line)
	if token := r.text("token"); token != "" && o.changesMode() {
		o.newFence, o.until = r.number("fence"), r.number("until")
	} else if token != "" {
		o.token, o.fence, o.until = token, r.number("fence"), r.number("until")
	}
	if mode := r.text("mode"); mode != "" {
		o.isRead = mode == "read"
	}
	o.holds = r.number("holds")
	return r.err
}

func (l *loader) histories() ([]*history, error) {
	names := map[string]string{} // of a token
	found := map[string]*history{}
	get := func(name string) *history {
		if found[name] == nil {
			found[name] = &history{name: name, end: l.end}
		}
		return found[name]
	}
	for _, o := range l.order {
		if (o.kind == "acquire" || o.kind == "attach") && o.outcome == "ok" {
			names[o.token] = o.name
		}
		if gone, isGone := l.gone[o.process]; isGone {
			o.gone = gone
		}
	}
	for _, o := range l.order {
		if o.name == "" && o.token != "" {
			o.name = names[o.token]
		}
		if o.name != "" {
			h := get(o.name)
			h.ops = append(h.ops, o)
		} else if o.kind != "close" && o.kind != "force" {
			return nil, fmt.Errorf("nobody acquired what this is about: %s", o.lines[0])
		}
	}
	for _, s := range l.sights {
		if s.tokens != nil {
			h := get(s.name)
			h.queues = append(h.queues, s)
		} else if h := found[names[s.token]]; h != nil {
			h.looks = append(h.looks, s)
		}
	}
	return l.sorted(found), nil
}

// sorted adds what concerns every name: a client that was closed, a server that forgot.
func (l *loader) sorted(found map[string]*history) []*history {
	var all []*history
	for _, h := range found {
		for _, o := range l.order {
			if o.name == "" && (o.kind == "close" || o.kind == "force") {
				h.ops = append(h.ops, o)
			}
		}
		sort.SliceStable(h.ops, func(i, j int) bool { return h.ops[i].call < h.ops[j].call })
		sort.SliceStable(h.queues, func(i, j int) bool { return h.queues[i].at < h.queues[j].at })
		all = append(all, h)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	return all
}
