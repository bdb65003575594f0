// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// A case of testdata/*.cases: lines in short, times in ms from 1000 s on. README.md says how.
type testCase struct {
	name  string
	want  []string // the checkers that must find something, no other may
	flags []string
	lines []string
}

func readCases(t *testing.T, path string) []*testCase {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []*testCase
	for _, line := range strings.Split(string(data), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "case":
			cases = append(cases, &testCase{name: strings.Join(words[1:], " ")})
		case words[0] == "found":
			cases[len(cases)-1].want = words[1:]
		case words[0] == "flags":
			cases[len(cases)-1].flags = words[1:]
		default:
			c := cases[len(cases)-1]
			c.lines = append(c.lines, line)
		}
	}
	return cases
}

func at(t *testing.T, text string) int64 {
	var number float64
	if _, err := fmt.Sscan(text, &number); err != nil {
		t.Fatalf("no time: %q", text)
	}
	return (1000000 + int64(number)) * ms
}

// writer turns the lines of a case into records.
type writer struct {
	t      *testing.T
	out    strings.Builder
	until  map[string]int64 // of a token
	number int
}

func (w *writer) put(format string, values ...interface{}) {
	fmt.Fprintf(&w.out, format+"\n", values...)
}

func (w *writer) take(line string) {
	words := strings.Fields(line)
	r := parse(strings.Join(words[3:], " "))
	who, op, time := words[0], words[1], words[2]
	fence := r.number("f")
	token := r.values["t"]
	if token == "" {
		token = fmt.Sprint("t", fence)
	}
	lease := fmt.Sprintf("token=%s fence=%d", token, fence)
	switch op {
	case "look":
		w.put("look %s %d %s until=%d", who, at(w.t, time), lease, w.deadline(r, token, at(w.t, time)))
		return
	case "queue":
		w.put("queue %s %d name=n tokens=%s", who, at(w.t, time), r.values["t"])
		return
	case "gone":
		w.put("gone %s %d", who, at(w.t, time))
		return
	}
	w.number++
	id := fmt.Sprintf("%s.%d", who, w.number)
	from, to, _ := strings.Cut(time, "-")
	call := at(w.t, from)
	w.put("call %s %d %s %s", id, call, op, w.arguments(op, r, lease, call, token))
	outcome := "ok"
	if len(r.words) > 0 {
		outcome = r.words[0]
	}
	if to == "" {
		return
	}
	if outcome != "ok" || op == "release" || op == "force" {
		w.put("return %s %d %s", id, at(w.t, to), outcome)
		return
	}
	if op == "upgrade" || op == "downgrade" {
		lease = fmt.Sprintf("token=%s fence=%d", token, r.number("to"))
	} else {
		w.until[token] = call + withoutDrift(r.number("lease")*ms)
	}
	if u, isGiven := r.values["u"]; isGiven {
		w.until[token] = at(w.t, u)
	}
	w.put("return %s %d ok %s until=%d holds=%d", id, at(w.t, to), lease, w.until[token],
		r.number("holds"))
}

func (w *writer) arguments(op string, r *record, lease string, call int64, token string) string {
	who := fmt.Sprint("client=c ttl_ms=", r.number("lease"))
	switch op {
	case "acquire":
		owner := ""
		if re := r.values["re"]; re != "" {
			owner = " reentrant=1 owner=" + re
		} else if own := r.values["owner"]; own != "" {
			owner = " owner=" + own
		}
		if r.number("part") != 0 {
			who += " part=1"
		}
		if limit := r.number("limit"); limit > 0 {
			who += fmt.Sprintf(" limit=%d permits=%d", limit, max(r.number("permits"), 1))
		}
		return fmt.Sprintf("name=n %s wait_ms=%d burst=%d renew=%d mode=%s quorum=%d%s", who,
			r.number("wait"), r.number("burst"), r.number("renew"), r.text("mode"), r.number("q"), owner)
	case "attach":
		return fmt.Sprintf("name=n %s token=%s", who, token)
	case "force":
		if r.number("q") != 0 {
			return "" // a server forgot everything
		}
		return "name=n"
	case "close":
		return who
	}
	return fmt.Sprintf("%s until=%d %s wait_ms=%d", lease, w.deadline(r, token, call), who,
		r.number("wait"))
}

// deadline is what is given, or what is known of the lease.
func (w *writer) deadline(r *record, token string, now int64) int64 {
	until := w.until[token]
	if text, isGiven := r.values["u"]; isGiven {
		until = at(w.t, text)
	}
	if until <= now {
		return 0
	}
	return until
}

func foundBy(output string) []string {
	set := map[string]bool{}
	for _, line := range strings.Split(output, "\n") {
		if rest, isFinding := strings.CutPrefix(line, `lock "n": `); isFinding {
			checker, _, _ := strings.Cut(rest, ":")
			set[checker] = true
		}
	}
	var names []string
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func TestHandMadeHistories(t *testing.T) {
	for _, file := range []string{"right", "wrong", "right-modes", "wrong-modes", "right-quorum",
		"wrong-quorum", "right-permits", "wrong-permits", "right-parts", "wrong-parts"} {
		cases := readCases(t, filepath.Join("testdata", file+".cases"))
		if len(cases) < 12 {
			t.Errorf("too few cases in %s: %d", file, len(cases))
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.judge(t, strings.HasPrefix(file, "wrong")) })
		}
	}
}

func (c *testCase) judge(t *testing.T, isWrong bool) {
	w := &writer{t: t, until: map[string]int64{}}
	for _, line := range c.lines {
		w.take(line)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(w.out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	status := check(append(append([]string{"-lease-slack-ms", "10"}, c.flags...), path), &out)
	sort.Strings(c.want)
	if found := foundBy(out.String()); fmt.Sprint(found) != fmt.Sprint(c.want) {
		t.Errorf("found %v, expected %v\n%s\n%s", found, c.want, out.String(), w.out.String())
	}
	if isWrong != (status == 1) || status > 1 {
		t.Errorf("exit %d\n%s", status, out.String())
	}
}

// A storm as tests/system makes it: long waits, and a history that must be cut to be judged.
func storm(waiters, holds int, fenceOf func(i int) int) string {
	var out strings.Builder
	now := 1000000 * ms
	called := make([]int64, holds)
	for i := range called {
		called[i] = now + int64(max(i-waiters, 0))*100
	}
	for i := 0; i < holds; i++ {
		begin := now + int64(i)*100
		fmt.Fprintf(&out, "call %d.%d %d acquire client=c name=n wait_ms=-1 ttl_ms=3000 burst=0"+
			" renew=1\n", i%waiters, i, called[i])
		lease := fmt.Sprintf("token=t%d fence=%d until=%d", i, fenceOf(i), begin+2000*ms)
		fmt.Fprintf(&out, "return %d.%d %d ok %s\n", i%waiters, i, begin+60, lease)
		fmt.Fprintf(&out, "call %d.r%d %d release %s\n", i%waiters, i, begin+90, lease)
		fmt.Fprintf(&out, "return %d.r%d %d ok\n", i%waiters, i, begin+120)
	}
	return out.String()
}

func TestAStormIsJudgedInParts(t *testing.T) {
	const holds = 20000
	rising := func(i int) int { return 32 * (i + 1) }
	swapped := func(i int) int {
		if i == holds/2 || i == holds/2+1 {
			return rising(holds + 1 - i)
		}
		return rising(i)
	}
	for _, c := range []struct {
		fenceOf func(int) int
		want    int
	}{{rising, 0}, {swapped, 1}} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(storm(32, holds, c.fenceOf)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if status := check([]string{path}, &out); status != c.want {
			t.Errorf("exit %d, expected %d\n%s", status, c.want, out.String())
		}
	}
}

// Who is granted what, and when.
type planned struct {
	grant, release int64 // ns
	fence          int
	options        string
	answer         string
}

// played has each of them wait for so many ns, and use the lock until its release.
func played(plan []planned, wait int64) string {
	var out strings.Builder
	for i, p := range plan {
		from := 1000000*ms + p.grant
		fmt.Fprintf(&out, "call %d.1 %d acquire client=c name=n wait_ms=-1 ttl_ms=3000 burst=0"+
			" renew=1 %s\n", i, from-wait, p.options)
		lease := fmt.Sprintf("token=t%d fence=%d until=%d", i, p.fence, from+2000*ms)
		fmt.Fprintf(&out, "return %d.1 %d ok %s\n", i, from+60, lease)
		fmt.Fprintf(&out, "call %d.2 %d release %s\n", i, 1000000*ms+p.release, lease)
		fmt.Fprintf(&out, "return %d.2 %d %s\n", i, 1000000*ms+p.release+30, p.answer)
	}
	return out.String()
}

// A writer and sixteen readers take turns.
func readers(phases int) []planned {
	var plan []planned
	for i := 0; i < phases; i++ {
		now, fence := int64(i)*3000, i*64+64
		plan = append(plan, planned{now, now + 90, fence, "", "ok"})
		for r := now; r < now+16*70; r += 70 {
			plan = append(plan, planned{r + 130, r + 1300, fence + 31, "mode=read", "ok"})
		}
	}
	return plan
}

// Three owners take turns, with seven holds each.
func owners(phases int) []planned {
	var plan []planned
	for i := 0; i < phases; i++ {
		owner, answer := fmt.Sprint("reentrant=1 owner=o", i%3), "still_held"
		for r := int64(0); r < 7; r++ {
			if r == 6 {
				answer = "ok"
			}
			now := int64(i)*2000 + r*70
			plan = append(plan, planned{now, now + 500, i*64 + 64, owner, answer})
		}
	}
	return plan
}

func TestStormsOfReadersAndOfOwners(t *testing.T) {
	const phases = 500
	early, freed := readers(phases), owners(phases)
	early[17*phases/2].grant -= 800 // a writer, before the last readers have gone
	freed[7*phases/2+1].answer = "ok"
	for i, plan := range [][]planned{readers(phases), owners(phases), early, freed} {
		for _, wait := range []int64{0, 5000} {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(played(plan, wait)), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if status := check([]string{path}, &out); status != i/2 {
				t.Errorf("plan %d, wait %d: exit %d\n%s", i, wait, status, out.String())
			}
		}
	}
}

func TestUnusableInput(t *testing.T) {
	call := "call 1.1 5 acquire name=n client=c wait_ms=0 ttl_ms=9\n"
	for _, text := range []string{
		"nonsense\n",
		"call 1.1 x acquire name=n\n",
		"return 1.1 5 ok\n",
		call + call,
		call + "return 1.1 6 busy\nreturn 1.1 7 busy\n",
		call + "return 1.1 4 busy\n",
		"call 1.1 5 release token=t fence=1 until=0\n",
		"call 1.1 5 acquire name=n ttl_ms=many\n",
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if status := check([]string{path}, &out); status != 2 {
			t.Errorf("exit %d for %q: %s", status, text, out.String())
		}
	}
	var out strings.Builder
	if check(nil, &out) != 2 || check([]string{"/nonexistent"}, &out) != 2 {
		t.Error("no files are no history")
	}
	path := filepath.Join(t.TempDir(), "log")
	// A process was killed while it wrote.
	if err := os.WriteFile(path, []byte(call+"return 1.1 6 bu"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := check([]string{path}, &out); status != 0 {
		t.Errorf("exit %d: %s", status, out.String())
	}
}

func TestWhatTakesTooLongIsUndecided(t *testing.T) {
	var text strings.Builder
	text.WriteString("call a.1 0 acquire name=n wait_ms=0 ttl_ms=100\n")
	text.WriteString("return a.1 1 ok token=t fence=32 until=99\n")
	// In every order of these the refusal is wrong.
	for i := 0; i < 60; i++ {
		fmt.Fprintf(&text, "call a.x%d 2 extend token=t fence=32 until=99 ttl_ms=100\n", i)
		fmt.Fprintf(&text, "return a.x%d 100 ok token=t fence=32 until=99\n", i)
	}
	fmt.Fprintf(&text, "call b.1 %d acquire name=n wait_ms=0 ttl_ms=9\n", 9000*ms)
	fmt.Fprintf(&text, "return b.1 %d busy\n", 9001*ms)
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if status := check([]string{"-timeout", "100ms", path}, &out); status != 3 {
		t.Errorf("exit %d\n%s", status, out.String())
	}
}
