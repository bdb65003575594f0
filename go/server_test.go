// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

package redlatch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"redlatch.io/redlatch"
)

// patience is for what should come at once, on a machine that is busy.
const patience = 20 * time.Second

// lossTTL is of a lease that is taken away: not over before that on a busy machine, and lost at its
// next renewal, after a third of it.
const lossTTL = 3 * time.Second

// Whatever a test leaves behind is found here: goroutines of the runtime and of testing are known.
func TestMain(m *testing.M) {
	if url := os.Getenv(computesAt); url != "" {
		computeForever(url)
	}
	folder, err := os.MkdirTemp("", "rl")
	if err != nil {
		panic(err)
	}
	s := &server{socket: filepath.Join(folder, "s")}
	if err := s.launch(); err != nil {
		panic(err)
	}
	url = s.url()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		s.kill()
		os.Exit(code)
	}))
}

// server is a redis-server of one test, on a socket in its own folder.
type server struct {
	t        testing.TB
	socket   string
	process  *os.Process
	launcher *exec.Cmd
	input    io.Closer // of the launcher, which ends the server when this is closed
}

func startServer(t testing.TB) *server {
	t.Helper()
	// The name of a socket is short: t.TempDir() has that of the test in it.
	folder, err := os.MkdirTemp("", "rl")
	must(t, err)
	s := &server{t: t, socket: filepath.Join(folder, "s")}
	t.Cleanup(s.kill)
	must(t, s.launch())
	return s
}

// launch returns when the server can be reached.
func (s *server) launch() error {
	s.launcher = exec.Command("../tests/support/server", filepath.Dir(s.socket))
	s.launcher.Stderr = os.Stderr
	input, err := s.launcher.StdinPipe()
	if err != nil {
		return err
	}
	output, err := s.launcher.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.launcher.Start(); err != nil {
		return err
	}
	s.input = input
	var pid int
	if _, err := fmt.Fscan(output, &pid); err != nil {
		return err
	}
	s.process, err = os.FindProcess(pid)
	return err
}

func (s *server) kill() {
	if s.process != nil {
		_ = s.input.Close()
		_ = s.launcher.Wait()
		s.process = nil
	}
}

func (s *server) url() string { return "unix://" + s.socket }

func (s *server) stop()   { must(s.t, s.process.Signal(syscall.SIGSTOP)) }
func (s *server) resume() { must(s.t, s.process.Signal(syscall.SIGCONT)) }

// ask sends one command in words, and returns the first line of the answer.
func (s *server) ask(words ...string) string {
	s.t.Helper()
	answer, err := s.tryToAsk(words...)
	must(s.t, err)
	return answer
}

// tryToAsk is ask for goroutines that may outlive the server.
func (s *server) tryToAsk(words ...string) (string, error) {
	connection, err := net.Dial("unix", s.socket)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err = connection.Write([]byte(request)); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimRight(answer, "\r\n"), err
}

func (s *server) client(options ...redlatch.ClientOption) *redlatch.Client {
	s.t.Helper()
	client, err := redlatch.Dial(context.Background(), s.url(), options...)
	must(s.t, err)
	s.t.Cleanup(func() { must(s.t, client.Close()) })
	return client
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, what bool, text string, values ...any) {
	t.Helper()
	if !what {
		t.Fatalf("not so: "+text, values...)
	}
}

// eventually waits for what another goroutine or process does.
func eventually(t testing.TB, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !fact(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to that")
		}
	}
}

// sleepsOfLibrary is how often its threads of all clients have gone to sleep so far.
func sleepsOfLibrary(t testing.TB) int {
	t.Helper()
	found, err := filepath.Glob("/proc/self/task/*/comm")
	must(t, err)
	all := -1
	for _, path := range found {
		name, _ := os.ReadFile(path) // It may have ended meanwhile.
		if string(name) != "redlatch\n" {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		_, counted, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
		var count int
		_, _ = fmt.Sscan(counted, &count)
		all += count
	}
	is(t, all >= 0, "it has a thread")
	return all
}

// threads are those of this process.
func threads(t testing.TB) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Fatal("reads /proc")
	}
	found, err := os.ReadDir("/proc/self/task")
	must(t, err)
	return len(found)
}
