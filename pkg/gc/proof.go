// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"sync"
	"time"
)

// proofLasts is how long a proof of Server.CatchUp counts, and the answer to a GET that
// an owner is in foreground deletion: a watch that is silent is not trusted for longer.
const proofLasts = time.Second

// proofs says whether an owner may be finished: that nothing depends on it which the
// events have not told of yet has to be proved, since its end was last asked for. One
// round of Server.CatchUp serves all owners that wait when it begins. Its zero value is
// ready for use, also by several goroutines.
type proofs struct {
	mu          sync.Mutex
	begun, over int
	// at is when the last round was over, and err why it proved nothing.
	at  time.Time
	err error
	// needs has the first round that counts for an owner.
	needs map[number]int
}

// running reports whether a round is under way.
func (p *proofs) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun > p.over
}

// renew makes rounds that have begun count for the owner no more.
func (p *proofs) renew(n number) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.needs, n)
}

// done reports whether a round that counts for the owner is over, and not too long ago, whatever
// it came to. Otherwise begin is called for the next round, unless one is under way; it returns
// true when that is over at once.
func (p *proofs) done(n number, begin func(round int) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	need, asked := p.needs[n]
	if asked && p.over >= need && time.Since(p.at) < proofLasts {
		return true
	}
	if p.needs == nil {
		p.needs = map[number]int{}
	}
	if !asked || p.over >= need {
		need = p.begun + 1
		p.needs[n] = need
	}
	if p.begun > p.over {
		return false
	}
	p.begun++
	if begin(p.begun) {
		p.over, p.at, p.err = p.begun, time.Now(), nil
		return true
	}
	return false
}

// end notes what a round came to.
func (p *proofs) end(round int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.at, p.err = round, time.Now(), err
}

// failure says why the last round proved nothing, nil when it proved what it was for.
func (p *proofs) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
