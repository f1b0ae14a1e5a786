// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/finalizer"
	"github.com/kubectl-gc/kubectl-gc/pkg/finalizers"
)

// All that explain says of controllers: those that remove finalizers, and what they need.

// FromCatalogue is the source of evidence that is not about the cluster but about
// finalizers, by the catalogue.
const FromCatalogue = "the catalogue of finalizers"

// entryEvidence is what the catalogue says of a finalizer.
func entryEvidence(m finalizers.Match) []Evidence {
	var facts []Evidence
	add := func(what, value string) {
		if value != "" {
			facts = append(facts, Evidence{Source: FromCatalogue, Path: what, Value: value})
		}
	}
	add("waits for", m.WaitsFor)
	for _, workload := range m.Workloads {
		add("usually runs as", runsAs(workload))
	}
	add("runs outside the cluster", m.OffCluster)
	add("note", m.Note)
	return facts
}

// noController is of one finalizer or several.
func noController(finalizers []string) string {
	shown := finalizers[:min(len(finalizers), evidence.MaxShown)]
	said := "no controller in the cluster removes the finalizer " + finalizers[0]
	if len(finalizers) > 1 {
		said = "no controller in the cluster removes the finalizers " + strings.Join(shown, ", ")
	}
	if more := len(finalizers) - len(shown); more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return said
}

// runsAs says where a workload usually runs, by the catalogue.
func runsAs(l finalizers.Workload) string {
	name := strings.TrimPrefix(l.Kind+"/"+l.Name, "/")
	switch l.Namespace {
	case "":
		return name
	case finalizers.ObjectNamespace:
		return name + " in the object's namespace"
	}
	return name + " in namespace " + l.Namespace
}

// Parts that several of them share.
const (
	retries         = "; the controller then retries by itself"
	resumes         = "; the controller then resumes"
	cleansUp        = ": it cleans up and removes the finalizer"
	cannotBindThere = "a RoleBinding that was deleted with its namespace cannot be recreated there: "
	askSetter       = "see when it was set, and with which program: ask the user who set it what it guards"
)

// controllerSayings are those of the rules about the controllers of finalizers.
var controllerSayings = map[finding.Word]saying{
	finalizer.OfFinalizer:    {text: "finalizer %s"},
	finalizer.OfSpec:         {text: "spec finalizer %s"},
	finalizer.That:           {text: ": "},
	finalizer.PodsNotMade:    {text: "the pods of its controller cannot be created"},
	finalizer.MustRemove:     {text: "%s must remove it"},
	finalizer.NotChecked:     {text: "%s must remove it: kube-controller-manager works, but what the finalizer waits for was not checked: %s"},
	finalizer.UsersOf:        {text: "the objects that use %s: %s"},
	finalizer.Outlived:       {text: "%s, later than the object (%s): the definition was deleted and recreated"},
	finalizer.SetBy:          {text: "the finalizer was set by %q (%s)"},
	finalizer.SetAt:          {text: " at %s"},
	finalizer.RemoveHarmless: {text: removeFinalizer, risk: Disruptive},
	finalizer.RemoveFromSpec: {text: "remove this entry of spec.finalizers alone, once you have done its cleanup yourself"},
	finalizer.LostCleanup:    {text: "the resources that its controller would have cleaned up, possibly outside the cluster"},

	finalizer.ProgressUnread: {text: "%s works, but its progress with the object could not be read"},
	finalizer.NotRemovedYet:  {text: "%s works, but has not removed the finalizer %s yet"},
	finalizer.NoProgress:     {text: "; it has shown no progress for %s"},
	finalizer.ButWritten:     {text: ", but the object was written to %s ago"},
	finalizer.MightBePaused:  {text: "; %s, which might be the reason"},
	finalizer.Reports:        {text: "; it reports: %s"},
	finalizer.ChangedSince:   {text: "; it does not say since when, and something changed %s ago"},
	finalizer.NamesMissing:   {text: "; %s names %s, which does not exist"},
	finalizer.RecreateNeeded: {text: "recreate %s, if the controller needs it" + retries},
	finalizer.ReferToAnother: {text: "make the object refer to another object than %s, if it can still be changed: nothing can be created in a namespace that is being deleted" + retries},
	finalizer.NeedsCreation:  {text: "%s works, but must create an object in a namespace that is being deleted, which is impossible: %s"},
	finalizer.OverQuota:      {text: "%s works, but cannot create what its cleanup needs: %s"},
	finalizer.IgnoresPaused:  {text: "%s works, but ignores the object, because it is paused: %s"},
	finalizer.CleanupFails:   {text: "%s works, but its cleanup fails: %s"},
	finalizer.HasFailedFor:   {text: "%s works, but its cleanup has failed for %s: %s"},
	finalizer.SkipStep:       {text: "make the controller skip that step, with the setting that its product has for it, or do the step by hand"},
	finalizer.RelaxQuota:     {text: "raise the quota, or relax the pod security level, that the message names" + retries},
	finalizer.FixFailure:     {text: "fix what the message names" + retries},
	finalizer.EndPause: {
		text: "end the pause, after asking who set it: the controller then resumes all work that the pause stopped, including this deletion",
		risk: Disruptive,
	},
	finalizer.WaitsUntilDeleted: {text: "%s waits until %s is deleted"},
	finalizer.WaitsForKept:      {text: "%s works, but waits until %s is deleted, which nothing has requested: %s"},
	finalizer.DeleteAwaited:     {text: "see what would be deleted with %s: delete it, if nothing needs it any more" + resumes},
	finalizer.OneOf:             {made: func(args ...any) string { return strings.Join(args[0].([]string), " or ") }},

	finalizer.NotAllowed:        {text: "%s works, but its ServiceAccount is not allowed to update or patch %s, so it cannot remove the finalizer"},
	finalizer.NotAllowedAtLeast: {text: "the ServiceAccount of %s is not allowed to update or patch %s, so it cannot remove the finalizer; it is not certain that the controller works otherwise: %s"},
	finalizer.ReapplyAggregated: {text: "see the roles that %s aggregates: reapply the one with this label that allows update or patch"},
	finalizer.BindSomeRole: {
		text: cannotBindThere + "bind the rights to update or patch %s to %s with a ClusterRole and a ClusterRoleBinding, and remove both once the object is gone",
		risk: Disruptive,
	},
	finalizer.BindEverywhere: {
		text: cannotBindThere + "bind ClusterRole/%s, which allows the change, in all namespaces; delete ClusterRoleBinding/%s once the object is gone",
		risk: Disruptive,
	},
	finalizer.RightsUntilThen: {text: "until then the controller has the rights of that role in all namespaces"},
	finalizer.RestoreRights:   {text: "check this with the API server, then reapply the RBAC objects of the product's chart or manifest" + resumes},
	finalizer.DeniedAsWell:    {text: "RBAC does not allow the controller to update or patch it: it needs that as well"},

	finalizer.DoesNotWork:          {text: "the controller does not work: %s"},
	finalizer.NoneWorks:            {text: "it is not known which of these is the controller, but none of them works: %s"},
	finalizer.IfController:         {text: "if %s is the controller: "},
	finalizer.RanInEnding:          {text: "the controller ran in namespace %s, which is being deleted, so nothing can be started there"},
	finalizer.RanInGone:            {text: "the controller ran in namespace %s, which no longer exists"},
	finalizer.BeingDeleted:         {text: "is being deleted"},
	finalizer.NoLongerExists:       {text: "no longer exists"},
	finalizer.RecreateNamespaceFor: {text: "recreate the namespace, then install %s in it: it cleans up and removes its finalizers"},
	finalizer.RunElsewhere:         {text: "run %s in another namespace, with rights in all namespaces, until it has removed its finalizers; nothing can be installed in %s"},
	finalizer.SetByUser:            {text: "a user set the finalizer %s by hand or in a manifest, and no controller in the cluster removes it"},
	finalizer.UserWhoSetIt:         {text: "the user who set it: %s"},
	finalizer.NoController:         {made: func(args ...any) string { return noController(args[0].([]string)) }},
	finalizer.HandlesOthers:        {text: "; %s handles it on %s only"},
	finalizer.SetterMissing:        {text: "; %q set it, but no workload has that name"},
	finalizer.NowhereElse:          {text: "%s: not a platform that runs this controller outside the cluster"},
	finalizer.Reinstall:            {text: "reinstall %s%s" + cleansUp},
	finalizer.UsuallyIn:            {made: func(args ...any) string { return ", usually " + runsAs(args[0].(finalizers.Workload)) }},
	finalizer.AnotherThan:          {text: ", in another namespace than %s, which is being deleted"},
	finalizer.AskUser:              {text: askSetter},
	finalizer.AskUserOrReinstall:   {text: askSetter + "; if a controller set it, reinstall that: it cleans up"},

	finalizer.StillHas:            {text: "the finalizer %s is not removed yet; %s"},
	finalizer.SeeStatusAndSetter:  {text: "see the status that the controller has written, and who set the finalizer: make the controller work, or reinstall it, and it cleans up"},
	finalizer.SeeLeader:           {text: "see who leads instead of %s: find out there why the finalizer is not removed, or stop the leader if it should not run"},
	finalizer.SeeLastLeader:       {text: "see who led last. The lease is a leftover if leader election was switched off; otherwise the log of %s says why it does not lead"},
	finalizer.IfNotNamedReinstall: {text: "if none of those named here is %s, reinstall it%s" + cleansUp},
	finalizer.ReinstallOrAllow:    {text: "reinstall %s for namespace %s alone, as it had one, and it cleans up; if %s is to serve %s, allow %s to update %s there"},
	finalizer.IfServes:            {text: "if %s is to serve namespace %s: "},
	finalizer.NoManagedFields:     {text: "no entry, so it is not known who set its finalizers and who has written to it"},
	finalizer.MightRunOutside:     {text: "no controller in this cluster removes the finalizer %s. Its controller might run where it cannot be seen from here (%s); if it does not, nothing will remove the finalizer"},
	finalizer.FindOutWhether:      {text: "find out whether it does: a working controller has written to the object, or to its status, since the deletion began; metadata.managedFields shows who wrote what and when"},
	finalizer.ReadLogOutside:      {text: "if it does, read its log where it runs (%s): nothing here shows why it has not removed the finalizer"},
	finalizer.IfNoneInstall:       {text: "if it does not, install %s%s" + cleansUp},
}
