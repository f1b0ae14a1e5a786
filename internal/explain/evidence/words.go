// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-gc/kubectl-gc/internal/say"
)

// What the facts say.

// The values of facts about what is not there.
const (
	NotSet       = "not set"
	DoesNotExist = "does not exist"
)

func (e Event) words() string {
	return fmt.Sprintf("%s: %s (%d times, last at %s)", e.Reason, e.Message, e.Count, e.Last.UTC().Format(time.RFC3339))
}

const (
	eventAbout say.Word = "Event about %s"
	noHolder            = "it has no holder"

	unreadFor       say.Word = "%s: %v"
	unreadForbidden say.Word = "%s: forbidden"
)

func renewedBy(age time.Duration, holder string) string {
	return fmt.Sprintf("%s ago by %s", duration.HumanDuration(age), holder)
}

// readAgain says, of a lease with and without a holder that looks expired, what a second look has shown.
var readAgain = map[bool]map[LeaseState]string{
	true: {
		LeaseFresh:  ", but renewed since: the clock of its holder lags",
		LeaseUnread: ", and unclear whether a holder whose clock lags has renewed it since",
	},
	false: {
		LeaseFresh:  ", but was taken since",
		LeaseUnread: ", and unclear whether it was taken since",
	},
}
