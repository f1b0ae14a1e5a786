// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/foresight"
	"github.com/kubectl-gc/kubectl-gc/internal/preview"
	"github.com/kubectl-gc/kubectl-gc/internal/uninstall"
	"github.com/kubectl-gc/kubectl-gc/pkg/gc"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// Uninstall is what a tool does, and what becomes of that.
type Uninstall struct{ *uninstall.Report }

// UninstallPlan is the document of an uninstall.
type UninstallPlan struct {
	metav1.TypeMeta `json:",inline"`
	Complete        bool       `json:"complete"`
	Unlisted        []Unlisted `json:"unlisted"`
	// Digest is of all the rest: a document that was changed is not believed.
	Digest    string    `json:"digest"`
	Cluster   types.UID `json:"cluster,omitempty"`
	Tool      string    `json:"tool"`
	Order     string    `json:"order"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Command   []string  `json:"command,omitempty"`
	// Of are those that delivered the objects.
	Of uninstall.Deliverers `json:"of,omitempty"`
	// Manifests is the digest of which objects the manifests of a prune have.
	Manifests         string                     `json:"manifests,omitempty"`
	PropagationPolicy metav1.DeletionPropagation `json:"propagationPolicy"`
	// Halted is why the tool deletes nothing at all.
	Halted   *OpenQuestion      `json:"halted,omitempty"`
	Barriers []UninstallBarrier `json:"barriers"`
	Outcome  []Outcome          `json:"outcome"`
	Kept     []KeptObject       `json:"kept"`
	Absent   []NamedObject      `json:"absent"`
	NotKnown []OpenQuestion     `json:"notKnown"`
	Left     []LeftObject       `json:"left"`
	// Stranded are objects that stay, and whose deletion will get stuck later.
	Stranded   []Stranded  `json:"stranded,omitempty"`
	WouldBreak []Broken    `json:"wouldBreak,omitempty"`
	Lost       []Lost      `json:"lost,omitempty"`
	Returns    []Returning `json:"returns,omitempty"`
	Unread     []string    `json:"unread,omitempty"`
}

// NamedObject is an object that need not exist.
type NamedObject struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
}

func newNamedObject(id graph.Identity) NamedObject {
	apiVersion, kind := id.Resource.GroupVersionKind().ToAPIVersionAndKind()
	return NamedObject{apiVersion, kind, id.Namespace, id.Name, id.UID}
}

// UninstallBarrier are objects that the tool deletes at the same time, or the controller of an object that it deletes, which is By.
type UninstallBarrier struct {
	Barrier int               `json:"barrier"`
	Kind    string            `json:"kind,omitempty"`
	By      *ObjectReference  `json:"by,omitempty"`
	After   []int             `json:"after"`
	Objects []ObjectReference `json:"objects"`
}

func newUninstallBarrier(number int, b *uninstall.Barrier) UninstallBarrier {
	u := UninstallBarrier{Barrier: number, Kind: b.Kind, After: []int{}, Objects: references(b.Objects)}
	if b.By.Name != "" {
		by := NewObjectReference(b.By)
		u.By = &by
	}
	for _, after := range b.After {
		u.After = append(u.After, after+1)
	}
	return u
}

// KeptObject is an object that the tool keeps.
type KeptObject struct {
	Object    NamedObject      `json:"object"`
	Reason    uninstall.Reason `json:"reason"`
	Message   string           `json:"message"`
	Instances int              `json:"instances,omitempty"`
	By        *ObjectReference `json:"by,omitempty"`
	// Owned stay with it.
	Owned []ObjectReference `json:"owned,omitempty"`
	uninstall.Version
}

func newKeptObject(k *uninstall.Kept) KeptObject {
	o := KeptObject{Object: newNamedObject(k.Object), Reason: k.Reason, Message: k.Says().String(), Instances: len(k.Instances),
		Version: k.Version}
	if len(k.Owned) > 0 {
		o.Owned = references(k.Owned)
	}
	if k.By.Name != "" {
		by := NewObjectReference(k.By)
		o.By = &by
	}
	return o
}

// LeftObject is an object that stays behind.
type LeftObject struct {
	Object    ObjectReference     `json:"object"`
	Belongs   uninstall.Belonging `json:"belongs"`
	Detail    string              `json:"detail,omitempty"`
	Message   string              `json:"message"`
	Instances int                 `json:"instances,omitempty"`
	uninstall.Version
}

// OpenQuestion is something that cannot be known beforehand.
type OpenQuestion struct {
	Object  *NamedObject    `json:"object,omitempty"`
	Cause   uninstall.Cause `json:"cause"`
	Message string          `json:"message"`
}

func newOpenQuestion(o *uninstall.Open) OpenQuestion {
	q := OpenQuestion{Cause: o.Cause, Message: o.Says().String()}
	if o.Item.Kind != "" {
		named := newNamedObject(o.Item.Identity())
		q.Object = &named
	}
	return q
}

// Stranded are objects of which a controller that goes removes a finalizer.
type Stranded struct {
	Kind       string          `json:"kind"`
	Finalizer  string          `json:"finalizer"`
	Count      int             `json:"count"`
	Names      []string        `json:"names"`
	Controller ObjectReference `json:"controller"`
	Message    string          `json:"message"`
	Certain    bool            `json:"certain"`
}

// Document describes it for programs.
func (u *Uninstall) Document() *UninstallPlan {
	s := u.Preview.Graph.Snapshot()
	d := &UninstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "UninstallPlan"},
		Complete: s.Complete(), Unlisted: NewUnlisted(s),
		Cluster: u.Cluster, Tool: u.Tool, Order: u.Order, Namespace: u.Namespace, Name: u.Name, Command: u.Command, Of: u.Of,
		Manifests: u.Manifests, PropagationPolicy: u.Policy,
		Barriers: []UninstallBarrier{}, Outcome: outcomes(u.Preview.Report), Kept: []KeptObject{}, Absent: []NamedObject{},
		NotKnown: []OpenQuestion{}, Left: []LeftObject{}, Unread: evidence.Gaps(u.Unread),
	}
	if u.Halt != nil {
		halted := newOpenQuestion(u.Halt)
		d.Halted = &halted
	}
	for i := range u.Barriers {
		d.Barriers = append(d.Barriers, newUninstallBarrier(i+1, &u.Barriers[i]))
	}
	for i := range d.Outcome {
		d.Outcome[i].Expected = u.Preview.Expected[d.Outcome[i].Object.UID]
		if o := &d.Outcome[i]; o.Result == gc.Remaining && u.Hook() != nil {
			o.Result, o.Reason = gc.Unknown, unlessHook(u.Hook(), o.Reason)
		}
	}
	for i := range u.Kept {
		d.Kept = append(d.Kept, newKeptObject(&u.Kept[i]))
	}
	for i := range u.Absent {
		d.Absent = append(d.Absent, newNamedObject(u.Absent[i].Identity()))
	}
	for i := range u.Open {
		d.NotKnown = append(d.NotKnown, newOpenQuestion(&u.Open[i]))
	}
	for i := range u.Left {
		l := &u.Left[i]
		d.Left = append(d.Left, LeftObject{NewObjectReference(l.Object), l.By, l.Detail, l.Says().String(), len(l.Instances),
			l.Version})
	}
	d.foresee(u.Forecast)
	d.Digest = d.digest()
	return d
}

// digest is of all but itself.
func (d *UninstallPlan) digest() string {
	document := *d
	document.Digest = ""
	return preview.Checksum(document)
}

// foresee adds what is foreseen.
func (d *UninstallPlan) foresee(s *foresight.Forecast) {
	var p DeletionPlan
	p.Foresee(s, false)
	d.Lost, d.Returns = p.Lost, p.Returns
	if s == nil {
		return
	}
	for i := range s.Breaks {
		b := &s.Breaks[i]
		if hung := b.Strands(); hung != nil {
			d.Stranded = append(d.Stranded, Stranded{hung.Kind, hung.Finalizer, hung.Count, hung.Names, NewObjectReference(b.Object),
				b.Why.String(), b.Certain})
			continue
		}
		d.WouldBreak = append(d.WouldBreak, Broken{NewObjectReference(b.Object), b.Why.String(), b.Certain})
	}
}

func unlessHook(hook *uninstall.Open, reason string) string {
	return fmt.Sprintf("unclear whether the pre-delete hook %s prevents it: %s", objectName(hook.Item.Identity()), reason)
}

// DeepCopyObject implements runtime.Object; the copy is shallow.
func (d *UninstallPlan) DeepCopyObject() runtime.Object {
	document := *d
	return &document
}

// NoneFirst says why nothing had better be deleted before the tool begins, although something gets stuck.
func (u *Uninstall) NoneFirst() string { return worded(u.WhyNotFirst(u.Forecast)) }

// UninstallNames prints the objects that the tool deletes, and those that go with them, as kubectl's -o name does.
func UninstallNames(w io.Writer, u *Uninstall) error {
	return DeletedNames(w, u.Preview.Report.Outcomes)
}
