// SPDX-License-Identifier: Apache-2.0

package foresight

import "github.com/kubectl-gc/kubectl-gc/pkg/graph"

// Why is a reason for what is foreseen. Its words, in words.go, are for people: what decides reads the values.
type Why interface{ words() string }

// How sure a reason is, and what it depends on.
type (
	// stuckBy: it is certain.
	stuckBy struct{ Why }
	// mayStick: it depends on what could not be read.
	mayStick struct{ Why }
	// unlessFirst: it depends on the order.
	unlessFirst struct{ Why }
	// inAnyOrder is unlessFirst for what cannot go first, because each needs the other.
	inAnyOrder struct{ Why }
)

// Of a finalizer, with who removes it.
type (
	// works: its controller does, when the catalogue's condition holds.
	works struct {
		finalizer string
		by        graph.Identity // without a name for one outside the cluster, who renews a lease
		when      string
	}
	// unused is works where nothing uses the object, and usedBy where something does that goes as well.
	unused struct{ works }
	usedBy struct {
		works
		user graph.Identity
	}
	// oneWorks: one of several that work is its controller. eachLoses: and each goes, or loses something.
	oneWorks struct {
		finalizer string
		among     []string
	}
	eachLoses oneWorks
	// uncheckedUse is works where the condition was not looked at, bySchedule where the controller is a CronJob.
	uncheckedUse struct{ works }
	bySchedule   struct{ works }
	// notWorking: its controller does not work, for the reason that its state gives.
	notWorking struct {
		finalizer string
		by        graph.Identity
		state     string
	}
	// denied: its controller may change no objects of the type.
	denied struct {
		finalizer string
		by        graph.Identity
		resource  string
	}
	// wentWithNamespace: its controller has gone.
	wentWithNamespace struct{ finalizer, whose string }
	// unclaimed: there is no controller for it.
	unclaimed struct{ finalizer string }
	// manual: persons set it.
	manual struct {
		finalizer string
		setters   []string
	}
	// unknownService: whether a controller removes it is not known, for the reason in why if there is one.
	unknownService struct{ finalizer, why string }
	// mightTake adds what the plan takes away from those who may be its controller.
	mightTake struct {
		Why
		going []string
	}
	// controllerLoses: its controller works, and loses something; before it, if the order is known.
	controllerLoses struct {
		finalizer string
		by        graph.Identity
		loss      deprivation
		before    bool
	}
	// createsWithin: its controller has to create something in a namespace that goes.
	createsWithin struct {
		finalizer       string
		by              graph.Identity
		what, namespace string
	}
	// needsAbsent: its controller, if one is known, needs something that does not exist.
	needsAbsent struct {
		finalizer string
		by        graph.Identity
		what      string
	}
	// doubted: something could not be read of its controller.
	doubted struct {
		finalizer string
		by        graph.Identity
		doubt     string
	}
	// pausedBy: the object is marked so that its controller leaves it alone, or may do so.
	pausedBy struct {
		finalizer string
		by        graph.Identity
		mark      string
		certain   bool
	}
	// byCause is what explain-stuck says of it; still is for what is not certain.
	byCause struct{ summary string }
	still   struct{ byCause }
)

// deprivation is what a controller loses by a plan. The zero value is nothing. It can be compared.
type deprivation struct {
	kind deprived
	// what names the objects that go.
	what string
	// step is the write by which it goes, counted from 1, and with the namespace with which it does; zero for neither.
	step int
	with string
}

// deprived is the kind of a deprivation.
type deprived int

const (
	ofNothing deprived = iota
	ofItself
	ofObject // its account, or what its pods mount
	ofRights
	ofNodes
	ofNeed // what it needs for the object, as an account in whose name it acts
)

// Of webhooks and policies that have to allow a change or a deletion.
type (
	// webhookSilent: nothing answers a webhook that is asked about every change of the object.
	webhookSilent struct {
		config graph.Identity
		// certain: it is asked, and may be otherwise.
		certain bool
		at      string
		silence silence
	}
	// webhooksUnread: which webhooks there are could not be read.
	webhooksUnread struct{ finalizer string }
	// parameterMissing: a policy judges by a parameter, and refuses without it.
	parameterMissing struct {
		policy, parameter string
		is                string // what is wrong with it: see words.go
	}
	// deletionJudged: a policy decides about the deletion, and what it says is not known.
	deletionJudged struct{ policy string }
	// deletionRefused: nothing answers a webhook that must allow the deletion, now or by the plan.
	deletionRefused struct {
		config graph.Identity
		at     string
		byPlan bool
	}
)

// silence says why nothing answers a webhook.
type silence int

const (
	silentNow       silence = iota // and the webhook stays
	silentUntilGone                // and the webhook goes, too
	silentIfUnread                 // what is at the service could not be read
	silentByThePlan                // what answers goes
	silentIfAsked                  // and whether it is asked is not certain
)

// What becomes of namespaces, and what must go first.
type (
	// contentUnknown: no namespace can be emptied without an aggregated API.
	contentUnknown struct{ api, backend graph.Identity }
	// contentFirst and instancesFirst: what is in it, or of it, stays; which names one, if it is known.
	contentFirst   struct{ which graph.Identity }
	instancesFirst struct{}
	// onlyWith: it goes only when another does.
	onlyWith struct{ which graph.Identity }
)

// What breaks outside a plan.
type (
	webhooksUnanswered struct {
		names, about []string
		service      string
		limited      bool // by selectors and conditions
		updates      bool
	}
	apiUnserved        struct{ backend graph.Identity }
	conversionUnserved struct{ service string }
	parametersGo       struct{ parameters, policy string }
	finalizerUnserved  struct {
		finalizer string
		certain   bool
		loss      deprivation
		kind      string
		names     []string // of the first
		count     int
	}
	driverGoes struct{ volumes int }
	namedGoes  struct {
		kind  string
		users []graph.Identity
		// without says what becomes of them.
		without string
	}
)

// What is lost with an object, or stays of it.
type (
	volumeUnread struct {
		what string
		err  error
	}
	volumeKept struct{ name, size, policy string }
	volumeGoes struct{ name, size, policy string }
	// withPods is of a claim that is being deleted and goes with the pods of the plan.
	withPods        struct{ Why }
	claimsUnread    struct{ err error }
	claimsUnlisted  struct{ whenDeleted string }
	claimsKept      struct{ claims []graph.Identity }
	cleansUpOutside struct {
		finalizer, product, waitsFor string
		// deployed is the number of objects of its status, 0 where that does not tell.
		deployed int
	}
	tokensGo struct{}
)

// Who makes an object again.
type (
	// recreated is what the simulation says.
	recreated struct{ says string }
	// aggregatedAgain is a ClusterRole that is put together from others.
	aggregatedAgain struct{}
	byApplication   struct {
		name string
		how  argo
	}
	byRelease     struct{ namespace, name string }
	byToolsObject struct {
		kind, namespace, name string
		unread                bool
	}
)

// argo is what is known of an Application of Argo CD.
type argo int

const (
	argoTracks argo = iota
	argoElsewhere
	argoByLabel
)
