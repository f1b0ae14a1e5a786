// SPDX-License-Identifier: Apache-2.0

package chromium

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-gc/kubectl-gc/test/debian"
)

// find looks for the program once.
var find = sync.OnceValues(func() (debian.Programs, error) {
	return debian.Find("chromium", []string{"chromium"}, []string{"chromium", "fonts-liberation"})
})

// Page is a page of a browser that lives as long as the test. It is not safe for
// concurrent use.
type Page struct {
	t       testing.TB
	in      io.Writer
	session string
	id      int
	// ended is closed when the browser has ended, and said is what it wrote for people.
	ended chan struct{}
	said  bytes.Buffer

	mu       sync.Mutex
	answers  map[int]chan answer
	requests []string
	problems []string
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts a browser with one page, or skips the test where there is none.
func Start(t testing.TB) *Page {
	t.Helper()
	programs, err := find()
	if err != nil {
		t.Skipf("there is no Chromium: %v", err)
	}
	toBrowser, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program(programs.Path), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
		"--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir())
	p := &Page{t: t, in: in, answers: map[int]chan answer{}, ended: make(chan struct{})}
	cmd.Env, cmd.ExtraFiles, cmd.Stderr = programs.Environ(), []*os.File{toBrowser, fromBrowser}, &p.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = toBrowser.Close(), fromBrowser.Close() // the browser's ends
	go p.listen(out)
	t.Cleanup(func() {
		p.session = ""
		_, _ = p.send("Browser.close", nil) // it may have ended
		_ = cmd.Wait()                      // it was told to end
		_, _ = in.Close(), out.Close()
	})
	p.attach()
	return p
}

// program is the browser on the PATH. The command of a package that was only
// unpacked is a script that looks for the browser where it would be installed.
func program(path string) string {
	for _, dir := range filepath.SplitList(path) {
		command := filepath.Join(dir, "chromium")
		if _, err := os.Stat(command); err != nil {
			continue
		}
		if unpacked := filepath.Join(dir, "../lib/chromium/chromium"); !strings.HasPrefix(dir, "/usr/") && !strings.HasPrefix(dir, "/bin") {
			if _, err := os.Stat(unpacked); err == nil {
				return unpacked
			}
		}
		return command
	}
	return "chromium"
}

// attach opens the page and asks to be told what it does.
func (p *Page) attach() {
	var target struct{ TargetID string }
	p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	p.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		p.call(domain+".enable", nil, nil)
	}
}

// send sends a command, and returns where its answer will be.
func (p *Page) send(method string, params any) (<-chan answer, error) {
	p.id++
	message := map[string]any{"id": p.id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if p.session != "" {
		message["sessionId"] = p.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	answers := make(chan answer, 1)
	p.mu.Lock()
	p.answers[p.id] = answers
	p.mu.Unlock()
	_, err = p.in.Write(append(text, 0))
	return answers, err
}

// call sends a command and waits for its answer.
func (p *Page) call(method string, params, result any) {
	p.t.Helper()
	answers, err := p.send(method, params)
	if err == nil {
		select {
		case a := <-answers:
			p.take(method, a, result)
			return
		case <-p.ended:
			err = errors.New("it has ended")
		case <-time.After(2 * time.Minute):
			err = errors.New("it does not answer")
		}
	}
	p.t.Fatalf("%s: talking to the browser: %v\n%s", method, err, p.said.String())
}

// take takes an answer.
func (p *Page) take(method string, a answer, result any) {
	p.t.Helper()
	if a.Error != nil {
		p.t.Fatalf("%s: %s", method, a.Error.Message)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		p.t.Fatalf("%s: %v: %s", method, err, a.Result)
	}
}

// listen takes what the browser says until it ends.
func (p *Page) listen(out io.Reader) {
	defer close(p.ended)
	reader := bufio.NewReader(out)
	for {
		text, err := reader.ReadBytes(0)
		if err != nil {
			return
		}
		var message struct {
			answer
			ID     int             `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &message); err != nil {
			continue
		}
		p.mu.Lock()
		if answers := p.answers[message.ID]; answers != nil {
			delete(p.answers, message.ID)
			answers <- message.answer
		}
		p.note(message.Method, message.Params)
		p.mu.Unlock()
	}
}

// note keeps requests, and what went wrong.
func (p *Page) note(method string, params json.RawMessage) {
	var event struct {
		Request struct{ URL string }
		Type    string
		Entry   struct{ Level, Text, URL string }
	}
	if err := json.Unmarshal(params, &event); err != nil {
		return
	}
	switch {
	case method == "Network.requestWillBeSent":
		p.requests = append(p.requests, event.Request.URL)
	case method == "Runtime.exceptionThrown", method == "Runtime.consoleAPICalled" && event.Type == "error",
		method == "Log.entryAdded" && event.Entry.Level == "error":
		p.problems = append(p.problems, method+": "+string(params))
	}
}

// Requests returns the URLs that the page asked for, and Problems what it
// complained about: exceptions, errors on the console, violations of its policy.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Problems are described with Requests.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Size sets the size of the window, in pixels.
func (p *Page) Size(width, height int) {
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Dark says which colours the user prefers.
func (p *Page) Dark(dark bool) {
	value := "light"
	if dark {
		value = "dark"
	}
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": value}}}, nil)
}

// Open opens a file and waits until the condition, an expression, holds in it.
func (p *Page) Open(file, condition string) {
	p.t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Go("file://"+path, condition)
}

// Go opens a URL and waits until the condition, an expression, holds in it.
func (p *Page) Go(url, condition string) {
	p.t.Helper()
	p.call("Page.navigate", map[string]any{"url": url}, nil)
	p.Await(condition)
}

// Await waits until an expression holds.
func (p *Page) Await(condition string) {
	p.t.Helper()
	for range 600 {
		var holds bool
		p.Eval("!!("+condition+")", &holds)
		if holds {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Fatalf("it does not come true that %s", condition)
}

// Eval evaluates an expression, and what it promises, into result, which may be
// nil.
func (p *Page) Eval(expression string, result any) {
	p.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(answer.Result.Value, result); err != nil {
		p.t.Fatalf("%s: %v: %s", expression, err, answer.Result.Value)
	}
}

// Key presses a key, by the name that events have for it.
func (p *Page) Key(key string) {
	p.t.Helper()
	press := map[string]any{"type": "keyDown", "key": key}
	if len([]rune(key)) == 1 {
		press["text"] = key
	} else if key == "Enter" {
		press["text"] = "\r"
	}
	p.call("Input.dispatchKeyEvent", press, nil)
	p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Type presses a key for each character.
func (p *Page) Type(text string) {
	p.t.Helper()
	for _, r := range text {
		p.Key(string(r))
	}
}

// Click clicks into the middle of the first element that the selector finds.
func (p *Page) Click(selector string) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	p.Eval(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`, selector), &at)
	p.Mouse("mousePressed", at.X, at.Y)
	p.Mouse("mouseReleased", at.X, at.Y)
}

// Mouse sends an event of the mouse, with its left button.
func (p *Page) Mouse(kind string, x, y float64) {
	p.t.Helper()
	p.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
}

// Wheel turns the wheel of the mouse at a place.
func (p *Page) Wheel(x, y, delta float64) {
	p.t.Helper()
	p.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": delta}, nil)
}

// Screenshot returns what the window shows, as a PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	var shot struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}
