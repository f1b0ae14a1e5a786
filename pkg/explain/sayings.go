// SPDX-License-Identifier: Apache-2.0

package explain

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-gc/kubectl-gc/pkg/explain/finding"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/network"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/pod"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/storage"
	"github.com/kubectl-gc/kubectl-gc/pkg/explain/rules/usage"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
)

// saying is what a word of the rules stands for: a text of words.go and words_*.go, or one that is made. That of a way
// out has its risk, empty for Safe.
type saying struct {
	text string
	made func(...any) string
	risk Risk
}

// controllerMight is the format of what a controller might do.
func controllerMight(do string) string {
	return might(&metav1.OwnerReference{Kind: "%s", Name: "%s"}, do)
}

// sayings has what each word stands for.
var sayings = map[finding.Word]saying{
	rules.Deleted:    {text: deletedByNow},
	rules.Unreadable: {text: unreadBlocker},
	rules.ByHand:     {text: removesFinalizer, risk: Dangerous},
	rules.DriverDown: {text: driverDown},
	rules.HolderGone: {text: holderGone},

	pod.AwaitPod:            {text: awaitPod},
	pod.DeletePod:           {text: deletePod, risk: Disruptive},
	pod.ScaleToZero:         {text: scaleToZero, risk: Disruptive},
	pod.LostClaims:          {text: lostClaims},
	pod.MightRecreate:       {text: controllerMight(recreateThePod)},
	pod.MightScaleUp:        {text: controllerMight(scaleUpAgain)},
	pod.NodeMissing:         {text: nodeMissing},
	pod.NodeUnread:          {text: nodeUnread},
	pod.KubeletUnknown:      {text: kubeletUnknown},
	pod.KubeletSilent:       {text: kubeletSilent},
	pod.VirtualKubelet:      {text: virtualKubelet},
	pod.VirtualKubeletOf:    {text: virtualKubeletOf},
	pod.ReservedForPod:      {text: reservedForPod},
	pod.ReservedForObject:   {text: reservedForObject},
	pod.ReservedElsewhere:   {text: reservedElsewhere},
	pod.DeviceFree:          {text: deviceFree},
	pod.Uses:                {text: podUses},
	pod.UsesUntilDone:       {text: podUsesUntilDone},
	pod.ThenDeleted:         {text: thenDeleted},
	pod.GroupMightHave:      {text: groupMightHave},
	pod.GroupRuns:           {text: groupPodRuns},
	pod.GroupEnded:          {text: groupEnded},
	pod.NotOfAJob:           {text: notOfAJob},
	pod.JobCounts:           {text: jobCounts},
	pod.JobControllerCounts: {text: jobControllerCounts},
	pod.Jobless:             {text: jobless},
	pod.JobGone:             {text: jobGone},
	pod.NeverCounted:        {text: neverCounted},
	pod.JobManagedBy:        {text: jobManagedBy},
	pod.Uncountable:         {text: uncountable, risk: Disruptive},
	pod.RepairJobManager:    {text: repairJobManager},
	pod.DeleteJob:           {text: deleteJob, risk: Disruptive},
	pod.LostJobResult:       {text: lostJobResult},

	network.BalancerLeft:    {text: deleteLoadBalancer.because()},
	network.BalancerUndone:  {text: deleteLoadBalancer.undone("%s", false)},
	network.BalancerFails:   {text: deleteLoadBalancer.undone("%s", true)},
	network.CloudController: {text: cloudController},
	network.ClassController: {text: classController},
	network.RepairCloud:     {text: repairCloud},
	network.LostBalancer:    {text: lostBalancer},
	network.AddressesUsed:   {text: addressesUsed},
	network.OnlyIn:          {text: onlyIn},
	network.RangeUnused:     {text: rangeUnused},
	network.AddRange:        {text: addRange},
	network.ReplaceService:  {text: replaceService, risk: Disruptive},
	network.LostAddress:     {text: lostAddress},

	usage.WaitsForUser:     {text: waitsForUser},
	usage.UsedBy:           {text: usedBy},
	usage.DeleteUser:       {text: deleteUser},
	usage.UserFirst:        {text: userFirst},
	usage.MightWaitForPods: {text: mightWaitForPods},
	usage.PodsEvicted:      {text: podsEvicted},
	usage.NotEvictable:     {text: notEvictable},
	usage.NoDisruption:     {text: noDisruption},
	usage.SeeBudgets:       {text: seeBudgets},
	usage.MachineLeft:      {text: machineLeft},

	storage.LostData:           {made: func(args ...any) string { return lostData(args[1].(graph.Identity), args[0].(string)) }},
	storage.LostUnknown:        {text: lostUnknown},
	storage.KeepData:           {made: func(args ...any) string { return keepData(args[0].(graph.Identity), args[1].(string), false) }},
	storage.KeepBehind:         {made: func(args ...any) string { return keepData(args[0].(graph.Identity), args[1].(string), true) }},
	storage.MightHaveUsers:     {text: mightHaveUsers},
	storage.UsedByEnding:       {text: usedByEnding},
	storage.UsedByPod:          {text: usedByPod},
	storage.ClaimUnused:        {text: claimUnused},
	storage.ClaimUsed:          {text: claimUsed},
	storage.ClaimReleased:      {text: claimReleased},
	storage.ClaimDeletable:     {text: claimDeletable},
	storage.ClaimUnprotected:   {text: claimUnprotected},
	storage.ClaimUsedByOne:     {text: claimUsedByOne},
	storage.ClaimUsedByMore:    {text: claimUsedByMore},
	storage.DeleteFinishedJob:  {text: deleteFinishedJob, risk: Disruptive},
	storage.RenewPod:           {text: renewPod, risk: Disruptive},
	storage.MightBeBound:       {text: mightBeBound},
	storage.IsBound:            {text: isBound},
	storage.BoundTo:            {text: boundTo},
	storage.Unbound:            {text: unbound},
	storage.ClaimGone:          {text: claimGone},
	storage.ClaimBinds:         {text: claimBinds},
	storage.DeleteClaim:        {text: deleteClaim, risk: Disruptive},
	storage.VolumeAttached:     {text: detachVolume.because()},
	storage.DetachUndone:       {text: detachVolume.undone("%s", false)},
	storage.DetachFails:        {text: detachVolume.undone("%s", true)},
	storage.StorageLeft:        {text: deleteStorage.because()},
	storage.StorageUndone:      {text: deleteStorage.undone("%s", false)},
	storage.StorageFails:       {text: deleteStorage.undone("%s", true)},
	storage.TheDriver:          {text: theDriver},
	storage.TheCSIDriver:       {text: theCSIDriver},
	storage.FromNode:           {text: fromNode},
	storage.DetachFromNodes:    {text: detachFromNodes},
	storage.StillAttachedTo:    {text: stillAttachedTo},
	storage.NoLeases:           {text: noLeases},
	storage.SecretMissing:      {text: secretMissing},
	storage.WaitsForRelease:    {text: waitsForRelease},
	storage.NothingToDelete:    {text: nothingToDelete},
	storage.SeePods:            {text: seePods},
	storage.RepairAttacher:     {text: repairAttacher},
	storage.RepairProvisioner:  {text: repairProvisioner},
	storage.KeepStorage:        {text: keepStorage, risk: Disruptive},
	storage.LostStorage:        {text: lostStorage},
	storage.LostAttachment:     {text: lostAttachment},
	storage.MightBeSnapshotted: {text: mightBeSnapshotted},
	storage.IsSnapshotted:      {text: isSnapshotted},
	storage.SnapshotIncomplete: {text: snapshotIncomplete},
	storage.MightBeCopied:      {text: mightBeCopied},
	storage.IsCopied:           {text: isCopied},
	storage.CopyIncomplete:     {text: copyIncomplete},
	storage.FilledByDriver:     {text: filledByDriver},
	storage.ContentsFirst:      {text: contentsFirst},
	storage.SnapshotLeft:       {text: deleteSnapshot.because()},
	storage.SnapshotUndone:     {text: deleteSnapshot.undone("%s", false)},
	storage.SnapshotFails:      {text: deleteSnapshot.undone("%s", true)},
	storage.CompleteCopy:       {text: completeCopy},
	storage.AbandonCopy:        {text: abandonCopy, risk: Disruptive},
	storage.RepairSnapshotter:  {text: repairSnapshotter},
	storage.MightBeUsed:        {text: mightBeUsed},
	storage.IsUsed:             {text: isUsed},
	storage.ClassUnused:        {text: classUnused},
	storage.ClassKept:          {text: classKept},
	storage.ClassChanging:      {text: classChanging},
	storage.AwaitClass:         {text: awaitClass},
	storage.ChooseClass:        {text: chooseClass},
	storage.EndClassUser:       {text: endClassUser, risk: Disruptive},
}
