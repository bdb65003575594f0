// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A transfer between two accounts, each a file with a number. Both are locked at once: a transfer
// that held one account and waited for the other could wait for a transfer in the opposite
// direction, which waits for it. So the order of the names does not matter.
//
//	transfer redis://localhost:6379 accounts alice bob 20
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"redlatch.io/redlatch"
)

type account struct{ folder, name string }

func (a account) path() string { return filepath.Join(a.folder, a.name) }

func (a account) lock() redlatch.NamedMode { return redlatch.Write("account/" + a.name) }

func (a account) read() (int64, error) {
	text, err := os.ReadFile(a.path())
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

func (a account) write(balance int64) error {
	return os.WriteFile(a.path(), []byte(fmt.Sprintln(balance)), 0o644)
}

func move(from, to account, amount int64) error {
	left, failure := from.read()
	sum, err := to.read()
	if err := errors.Join(failure, err); err != nil {
		return err
	}
	if left < amount {
		fmt.Printf("refused: %s has only %d\n", from.name, left)
		return nil
	}
	left, sum = left-amount, sum+amount
	if err := errors.Join(from.write(left), to.write(sum)); err != nil {
		return err
	}
	fmt.Printf("moved %d: %s has %d, %s has %d\n", amount, from.name, left, to.name, sum)
	return nil
}

// moveGuarded waits for both accounts for at most 30 s.
func moveGuarded(client *redlatch.Client, from, to account, amount int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	lease, err := client.LockAll(ctx, []redlatch.NamedMode{from.lock(), to.lock()})
	if err != nil {
		return err
	}
	// ErrLost would mean that another transfer may have changed the accounts at the same time.
	return errors.Join(move(from, to, amount), lease.Unlock(context.WithoutCancel(ctx)))
}

// amountOf returns the amount of the arguments; false if they are wrong.
func amountOf(arguments []string) (int64, bool) {
	if len(arguments) != 6 {
		return 0, false
	}
	amount, err := strconv.ParseInt(arguments[5], 10, 64)
	return amount, err == nil && amount >= 0
}

func main() {
	log.SetFlags(0)
	amount, ok := amountOf(os.Args)
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: transfer URL FOLDER FROM TO AMOUNT")
		os.Exit(64)
	}
	from, to := account{os.Args[2], os.Args[3]}, account{os.Args[2], os.Args[4]}
	client, err := redlatch.Open(os.Args[1])
	if err == nil {
		err = moveGuarded(client, from, to, amount)
	}
	if err != nil {
		log.Fatal("transfer: ", err)
	}
}
