// SPDX-License-Identifier: Apache-2.0

// Command podbin is what containers on test nodes run. Its argument says how it
// ends: "pause" obeys SIGTERM, "ignore" does not, and "done" ends at once. "write"
// adds a line to /data/starts, and pauses.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	mode := "pause"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	if mode == "write" {
		file, err := os.OpenFile("/data/starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		if _, err := fmt.Fprintln(file, time.Now()); err != nil {
			panic(err)
		}
	}
	for mode != "done" {
		if <-signals; mode != "ignore" {
			return
		}
	}
}
