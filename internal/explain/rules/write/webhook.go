// SPDX-License-Identifier: Apache-2.0

package write

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/admission"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/controllers"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/rules/workload"
	"github.com/kubectl-gc/kubectl-gc/internal/say"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

var corrections = map[admission.WrongCall]say.Text{
	admission.WrongCertificate: say.Of(CorrectCertificate),
	admission.WrongPort:        say.Of(CorrectPort),
	admission.NotListening:     say.Of(MakeListen),
	admission.WrongPath:        say.Of(CorrectPath),
	admission.Late:             say.Of(CheckNetwork),
}

// byWebhook is a webhook that was called: it is unreachable, or rejects the write. The API server tells only its name, which
// others may have in other configurations.
func (f refused) byWebhook() *finding.Cause {
	suspects := f.Admission.WebhooksNamed(f.n, f.r, f.operation)
	switch {
	case len(suspects) != 1:
		return f.unclearWebhook(suspects)
	case f.r.Kind == answer.WebhookDenied:
		return f.denies(suspects[0])
	case f.r.Passed > 0:
		return f.answersSometimes(suspects[0])
	}
	return DeadWebhook(f.Facts, f.n, suspects[0], f.Admission.ServingOf(suspects[0]), f.r.Fact(), f.r.Message)
}

// denies is a webhook that answers, and rejects the write. Which senders it accepts is in its code.
func (f refused) denies(h *admission.Webhook) *finding.Cause {
	c := f.met(f.Once(finding.AdmWebhookDeny, keyOf(h), func(c *finding.Cause) {
		c.At, c.Summary = h.Config, say.Of(WebhookRejects, h.Name, f.rejected()).And(AnswerToYou)
		c.Evidence = shows(f.r.Fact(), h, nil)
		c.Ways = []finding.Way{finding.See(remedy.YAML(f.n.Identity()), ChangeForWebhook)}
		if f.operation == "UPDATE" {
			f.notOfTheWrite(c, f.Admission.Changers(f.n, h, f.r))
		}
	}))
	f.example(c)
	exempt(f.Facts, c, f.n, true, h)
	return c
}

// notOfTheWrite says of a change that is rejected, and that the write does not make, who makes it meanwhile.
func (f refused) notOfTheWrite(c *finding.Cause, changers []admission.Mutator) {
	var names []say.Text
	for i := range changers[:min(len(changers), evidence.MaxShown)] {
		names = append(names, say.Plain(changers[i].At))
		way := f.spare(&changers[i])
		way.Effect = say.Of(SpareEndingOf, changers[i].At)
		c.Evidence, c.Ways = append(c.Evidence, changers[i].Evidence), append(c.Ways, way)
	}
	if len(names) > 0 {
		c.Summary = c.Summary.And(NotOfTheWrite, say.Join(", ", slices.CompactFunc(names, say.Text.Equal)...))
	}
}

// answersSometimes is a webhook of which some calls fail: whether the write that is needed is refused is not known.
func (f refused) answersSometimes(h *admission.Webhook) *finding.Cause {
	return f.Once(finding.AdmWebhookDead, keyOf(h)+" sometimes", func(c *finding.Cause) {
		s, wrong := f.Admission.ServingOf(h), admission.CallError(f.r.Message)
		if corrections[wrong].IsZero() {
			wrong = admission.Late
		}
		c.At, c.Summary = h.Config, say.Of(AnswersSometimes, h.Name, f.r.Passed, f.r.Asked)
		c.Evidence = shows(f.r.Fact(), h, s)
		c.Ways = []finding.Way{correctCall(h, s, wrong, say.Of(BlockedPass))}
	})
}

// unclearWebhook is a refusal by a webhook of which the configuration is not known, or several may be meant.
func (f refused) unclearWebhook(suspects []*admission.Webhook) *finding.Cause {
	c := &finding.Cause{
		Kind: finding.AdmWebhookDead, At: f.n.Identity(), Key: f.r.Name, Verdict: finding.Stuck, Summary: say.Of(SomeUnreachable, f.r.Name),
		Evidence: finding.Facts(f.r.Fact()),
	}
	if f.r.Kind == answer.WebhookDenied {
		c.Kind, c.Verdict, c.Summary = finding.AdmWebhookDeny, finding.Unknown, say.Of(SomeRejects, f.r.Name)
	}
	switch {
	case len(suspects) > 0:
		c.Summary = c.Summary.And(OneOfSeveral)
	case f.Admission.Configured():
		c.Summary, c.Ways = c.Summary.And(NotInAPI), []finding.Way{{Effect: say.Of(FromFile)}}
	default:
		c.Summary = c.Summary.And(ConfigUnread)
	}
	because(c, f.r.Refusal)
	if c.Verdict == finding.Unknown {
		c.Summary = c.Summary.And(AnswerToYou)
	}
	for i, h := range suspects {
		c.Evidence = append(c.Evidence, configured(h)...)
		if len(c.Ways) < 2*evidence.MaxShown && (i == 0 || suspects[i-1].Config != h.Config) {
			c.Ways = append(c.Ways, finding.See(remedy.YAML(h.Config), FindWebhook))
		}
	}
	return f.met(c)
}

// DeadWebhook is an unreachable webhook that must allow a write to an object, which the first fact shows. The service is nil
// for one that is called by a URL; message says how the call failed, and is empty when none was made. The webhooks of a
// configuration that have one backend are one cause.
func DeadWebhook(f *rules.Facts, n graph.Node, h *admission.Webhook, s *admission.Serving, first finding.Fact,
	message string) *finding.Cause {
	served := h.ClientConfig.URL
	if service := h.ClientConfig.Service; service != nil {
		served = service.Namespace + "/" + service.Name
	}
	c := f.Once(finding.AdmWebhookDead, fmt.Sprintf("%s %s %t", h.Config.UID, served, h.JudgesUsers()), func(c *finding.Cause) {
		c.At, c.Verdict = h.Config, finding.Stuck
		if h.JudgesUsers() {
			c.Verdict = finding.Unknown
		}
		c.Evidence, c.Ways = shows(first, h, s), deadWays(f, h, s, message)
	})
	if !slices.ContainsFunc(f.Together[c], func(have *admission.Webhook) bool { return have.Name == h.Name }) {
		f.Together[c] = append(f.Together[c], h)
		takeIn(f, c, h, s, message)
	}
	bypass(f, c, n, f.Together[c]...)
	return met(f, n, c, `failed calling webhook "`+h.Name+`"`)
}

// takeIn makes a cause that of one more webhook.
func takeIn(f *rules.Facts, c *finding.Cause, h *admission.Webhook, s *admission.Serving, message string) {
	hooks := f.Together[c]
	switch {
	case len(hooks) > 1:
		var names []string
		for _, h := range inOrder(hooks) {
			names = append(names, h.Name)
		}
		c.Summary = say.Of(AllUnreachable, strings.Join(names, ", "), unreachable(s, message))
		if len(hooks) <= evidence.MaxShown {
			c.Evidence = append(c.Evidence, configured(h)...)
		}
	case admission.CallError(message) == admission.Late && (s == nil || !s.Dead):
		c.Summary = say.Of(NotInTime, h.Name, h.Seconds())
	default:
		c.Summary = say.Of(OneUnreachable, h.Name, unreachable(s, message))
	}
	if c.Verdict != finding.Stuck {
		c.Summary = c.Summary.And(AsksWho)
	}
	if s == nil {
		return
	}
	if behind := f.Finder.Behind(s.Namespace, s.Name); len(behind) > 0 {
		c.Summary = c.Summary.And(BackendIs, behind[0].ID())
	}
	c.Summary = c.Summary.Then(workload.Hopeless(s))
}

// unreachable says why a webhook cannot be called: by what is known of its service, nil for none, or with the words of the call.
func unreachable(s *admission.Serving, message string) say.Text {
	switch at := strings.LastIndex(message, `": `); {
	case s != nil && s.Uninstalled:
		return say.Of(NoService, evidence.Identity(evidence.Services, s.Namespace, s.Name))
	case s != nil && s.Dead:
		return say.Of(NoEndpoint, evidence.Identity(evidence.Services, s.Namespace, s.Name))
	case at >= 0:
		return say.Of(Reason, admission.Shortened(strings.TrimPrefix(message[at+len(`": `):], "failed to call webhook: ")))
	}
	return say.Text{}
}

// deadWays are the ways out of a webhook that cannot be called.
func deadWays(f *rules.Facts, h *admission.Webhook, s *admission.Serving, message string) []finding.Way {
	var ways []finding.Way
	end := finding.Does(remedy.DeleteOf(h.Config, metav1.DeleteOptions{}).Saved(f.Version(h.Config)), DeleteConfiguration)
	end.Loss = unguards(Webhooks, FromNowOn)
	switch wrong := admission.CallError(message); {
	case leftover(f, h):
		end.Effect, end.Leftover = say.Of(DeleteLeftover), true
		return []finding.Way{end}
	case wrong != admission.OtherCall && (s == nil || !s.Dead):
		ways = []finding.Way{correctCall(h, s, wrong, say.Of(BlockedPass))}
	case s != nil:
		ways = workload.Repair(f.Reader, s, say.Of(BlockedPass))
	default:
		look := remedy.YAML(h.Config)
		ways = []finding.Way{{Effect: say.Of(MakeURLAnswer).And(BlockedPass), Look: &look}}
	}
	if s == nil {
		ways = append(ways, end)
	}
	return ways
}

// leftover reports whether the configuration of a webhook is left over: none of its webhooks has a service that exists.
func leftover(f *rules.Facts, h *admission.Webhook) bool {
	return !slices.ContainsFunc(f.Admission.Webhooks(), func(other *admission.Webhook) bool {
		s := f.Admission.ServingOf(other)
		return other.Config == h.Config && (s == nil || !s.Uninstalled)
	})
}

// bypass adds the ways to get past webhooks of one configuration that cannot be called, the narrower one first.
func bypass(f *rules.Facts, c *finding.Cause, n graph.Node, hooks ...*admission.Webhook) {
	exempt(f, c, n, false, hooks...)
	if !leftover(f, hooks[0]) { // or else it is deleted
		c.Put(passOver(f, c, hooks...))
	}
}

// passOver makes writes pass while webhooks of one configuration are unreachable, in all namespaces: what more than the objects that are
// blocked then passes cannot be named.
func passOver(f *rules.Facts, c *finding.Cause, hooks ...*admission.Webhook) finding.Way {
	what, in := Webhook, WhileItIs
	if len(hooks) > 1 {
		what, in = Webhooks, WhileTheyAre
	}
	var steps []remedy.Step
	for _, h := range inOrder(hooks) {
		at, test := entry(h)
		steps = append(steps, append(test, remedy.Replace(at+"/failurePolicy", "Ignore"))...)
	}
	way := finding.Does(f.Change(hooks[0].Config, hooks[0].Whole, steps...), LetPass, what, in).At(finding.Dangerous)
	way.Slot, way.Loss, way.Temporary = "pass over "+c.Key, unguards(what, in), true
	return way
}

// correctCall is the way to correct how a webhook is called, when its backend exists.
func correctCall(h *admission.Webhook, s *admission.Serving, wrong admission.WrongCall, then say.Text) finding.Way {
	look := remedy.YAML(h.Config)
	if s != nil && (wrong == admission.WrongPort || wrong == admission.NotListening) {
		look = remedy.Look{Words: "get service,endpointslices -o wide", Of: graph.Identity{Namespace: s.Namespace}}
	}
	return finding.Way{Effect: corrections[wrong].Then(then), Look: &look}
}

// Delays are what delays a write that is not refused: webhooks that do not answer and may be passed over.
func Delays(f *rules.Facts, n graph.Node, r admission.Reply, operation string) []*finding.Cause {
	if !r.OK() || !r.Slow() {
		return nil
	}
	suspects, certain := f.Admission.Delaying(n, r)
	took := r.Took.Round(time.Second)
	var causes []*finding.Cause
	for _, h := range suspects {
		c := f.Once(finding.AdmWebhookDead, keyOf(h)+" delays", func(c *finding.Cause) {
			s := f.Admission.ServingOf(h)
			c.At, c.Summary = h.Config, say.Of(MightDelay, h.Name, operation, took)
			if len(suspects) == 1 && r.Kind == answer.Accepted {
				c.Verdict, c.Summary = finding.Progressing, say.Of(SeemsToAnswerLate, h.Name, took)
				if certain {
					c.Summary = say.Of(AnswersLate, h.Name, took)
				}
			}
			c.Evidence = shows(finding.AtSays(r.Fact().Source, "", AnsweredAfter, took, cmp.Or(strings.TrimSpace(r.Message), "accepted")), h, s)
			c.Ways = []finding.Way{correctCall(h, s, admission.Late, say.Of(NoLongerWait))}
			if s != nil && s.Dead {
				c.Ways = workload.Repair(f.Reader, s, say.Of(NoLongerWait))
			}
		})
		exempt(f, c, n, false, h)
		causes = append(causes, c)
	}
	return causes
}

// ForPods are the webhooks that keep the pods of a workload from being created: the one that the API server names, if it is
// known which, and all others that must allow them and cannot be reached.
func ForPods(f *rules.Facts, l *controllers.Workload) []*finding.Cause {
	message, id := f.Finder.StateOf(l).Obstacle, l.ID()
	r := admission.Reply{Refusal: answer.ToWrite(errors.New(message)), About: id}
	if message == "" || r.Kind != answer.WebhookFailed {
		return nil
	}
	n, known := f.Node(id.Resource.GroupResource(), id.Namespace, id.UID)
	if !known {
		return nil
	}
	var all []*finding.Cause
	if named := f.Admission.WebhooksNamed(n, r, "CREATE"); len(named) == 1 {
		all = append(all, DeadWebhook(f, n, named[0], f.Admission.ServingOf(named[0]),
			finding.At(id, "status.conditions[ReplicaFailure]", message), message))
	}
	return Unreachable(f, n, f.Admission.DeadForPods(n), finding.AtSays(id, "", CoversPods), all...)
}

// keyOf tells a webhook from all others.
func keyOf(h *admission.Webhook) string { return string(h.Config.UID) + " " + h.Name }

// inOrder are webhooks of one configuration as it has them: the API server calls them at once, and names any first.
func inOrder(hooks []*admission.Webhook) []*admission.Webhook {
	return slices.SortedFunc(slices.Values(hooks), func(a, b *admission.Webhook) int { return a.Index - b.Index })
}

// entry is where a webhook stands in its configuration, with the step that makes certain that it is there.
func entry(h *admission.Webhook) (at string, test []remedy.Step) {
	at = fmt.Sprintf("/webhooks/%d", h.Index)
	return at, []remedy.Step{remedy.Test(at+"/name", h.Name)}
}

// shows is the evidence of a webhook and its service, which may be nil, after another fact.
func shows(first finding.Fact, h *admission.Webhook, s *admission.Serving) []finding.Fact {
	facts := append([]finding.Fact{first}, configured(h)...)
	if s != nil {
		facts = append(facts, finding.Facts(s.Evidence...)...)
	}
	return facts
}

// configured is what its configuration says of a webhook.
func configured(h *admission.Webhook) []finding.Fact {
	where := h.ClientConfig.URL
	if service := h.ClientConfig.Service; service != nil {
		where = "service " + service.Namespace + "/" + service.Name
	}
	return []finding.Fact{finding.At(h.Config, h.Path()+".clientConfig", where),
		finding.At(h.Config, h.Path()+".failurePolicy", h.FailurePolicy)}
}
