// SPDX-License-Identifier: Apache-2.0

package finalizers_test

// known has a line for each finalizer that was looked up in its product's
// source: where it is defined, and the finalizer. Lines with several have the
// old and the new one, or those that are defined side by side, or examples
// where it has a form.
const known = `
k8s.io/apimachinery@v0.36.3/pkg/apis/meta/v1/types.go:126 | foregroundDeletion
k8s.io/apimachinery@v0.36.3/pkg/apis/meta/v1/types.go:125 | orphan
k8s.io/api@v0.36.3/core/v1/types.go:7074 | kubernetes
k8s.io/kubernetes@v1.36.3/pkg/volume/util/finalizer.go:21 | kubernetes.io/pvc-protection
k8s.io/kubernetes@v1.36.3/pkg/volume/util/finalizer.go:24 | kubernetes.io/pv-protection
k8s.io/kubernetes@v1.36.3/pkg/volume/util/finalizer.go:27 | kubernetes.io/vac-protection
k8s.io/component-helpers@v0.36.3/storage/volume/pv_helpers.go:82 | kubernetes.io/pv-controller
kubernetes-sigs/sig-storage-lib-external-provisioner@7b865eb9 controller/controller.go:89 | external-provisioner.volume.kubernetes.io/finalizer
kubernetes-csi/external-attacher@e6106024 pkg/controller/util.go:140 | external-attacher/ebs-csi-aws-com
k8s.io/apiextensions-apiserver@v0.36.3/pkg/apis/apiextensions/v1/types.go:395 | customresourcecleanup.apiextensions.k8s.io
k8s.io/api@v0.36.3/batch/v1/types.go:44 | batch.kubernetes.io/job-tracking
k8s.io/cloud-provider@v0.36.3/service/helpers/helper.go:45 | service.kubernetes.io/load-balancer-cleanup
k8s.io/kubernetes@v1.36.3/pkg/controller/servicecidrs/servicecidrs_controller.go:62 | networking.k8s.io/service-cidr-finalizer
k8s.io/api@v0.36.3/resource/v1/types.go:33 | resource.kubernetes.io/delete-protection
k8s.io/kubernetes@v1.36.3/pkg/apis/scheduling/types.go:45 | scheduling.k8s.io/podgroup-protection
kubernetes-csi/external-snapshotter@afb2f0d8 pkg/utils/util.go:82 | snapshot.storage.kubernetes.io/volumesnapshot-bound-protection
kubernetes-csi/external-snapshotter@afb2f0d8 pkg/utils/util.go:84 | snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection
kubernetes-csi/external-snapshotter@afb2f0d8 pkg/utils/util.go:80 | snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection
kubernetes-csi/external-snapshotter@afb2f0d8 pkg/utils/util.go:86 | snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection
kubernetes-csi/external-snapshotter@afb2f0d8 pkg/utils/util.go:88 | snapshot.storage.kubernetes.io/pvc-as-source-protection
kubernetes-csi/external-snapshotter@afb2f0d8 pkg/utils/util.go:90 | groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection
kubernetes-csi/external-snapshotter@afb2f0d8 pkg/utils/util.go:92 | groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-bound-protection
kubernetes-csi/external-provisioner@0688604f pkg/controller/controller.go:164 | provisioner.storage.kubernetes.io/cloning-protection
kubernetes-csi/external-provisioner@0688604f pkg/controller/controller.go:168 | provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection
kubernetes-csi/lib-volume-populator@be234bc9 populator-machinery/controller.go:69 | openebs.io/populate-target-protection
NetApp/trident@71dd7161 cli/k8s_client/k8s_client.go:63 | trident.netapp.io
kubernetes-sigs/vsphere-csi-driver@bf809025 pkg/syncer/cnsoperator/types/types.go:23 | cns.vmware.com
kubernetes-sigs/vsphere-csi-driver@bf809025 pkg/syncer/cnsoperator/types/types.go:27 | cns.vmware.com/pvc-protection
kubernetes-sigs/vsphere-csi-driver@bf809025 pkg/syncer/cnsoperator/types/types.go:37 | cns.vmware.com/pvc-delete-protection
kubernetes-sigs/vsphere-csi-driver@bf809025 pkg/syncer/cnsoperator/types/types.go:42 | cns.vmware.com/volumesnapshot-protection
topolvm/topolvm@83e3dcee constants.go:75 | topolvm.io/pvc
openebs/zfs-localpv@d52f9a9a pkg/zfs/volume.go:42 | zfs.openebs.io/finalizer
openebs/lvm-localpv@f3276f4c pkg/lvm/volume.go:42 | lvm.openebs.io/finalizer
piraeusdatastore/piraeus-operator@0ef32285 pkg/vars/vars.go:23 | piraeus.io/satellite-protection
minio/directpv@a9adb854 pkg/apis/directpv.min.io/v1beta1/volume.go:28 | directpv.min.io/data-protection directpv.min.io/pv-protection directpv.min.io/purge-protection
juicedata/juicefs-csi-driver@5e5a4b3b pkg/common/common.go:28 | juicefs.com/finalizer
libopenstorage/operator@303cc373 pkg/controller/storagecluster/storagecluster.go:79 | operator.libopenstorage.org/delete
rook/rook@d0c3b9ce pkg/operator/ceph/controller/finalizer.go:100 | cephcluster.ceph.rook.io
rook/rook@d0c3b9ce pkg/operator/ceph/cluster/mon/mon.go:107 | ceph.rook.io/disaster-protection
longhorn/longhorn-manager@5ddaa369 datastore/longhorn.go:49 | longhorn.io
kube-object-storage/lib-bucket-provisioner@5164e374 pkg/provisioner/resourcehandlers.go:49 | objectbucket.io/finalizer
noobaa/noobaa-operator@2583ea7a pkg/apis/noobaa/v1alpha1/noobaa_types.go:845 | noobaa.io/finalizer noobaa.io/graceful_finalizer
red-hat-storage/ocs-operator@ab00543d internal/controller/storagecluster/reconcile.go:97 | storagecluster.ocs.openshift.io
fluid-cloudnative/fluid@a826600a pkg/controllers/v1alpha1/dataset/dataset_controller.go:47 | fluid-dataset-controller-finalizer
fluid-cloudnative/fluid@a826600a pkg/controllers/v1alpha1/alluxio/implement.go:29 | alluxio-runtime-controller-finalizer
argoproj/argo-cd@37ee0097 pkg/apis/application/v1alpha1/application_defaults.go:10 | resources-finalizer.argocd.argoproj.io
argoproj/argo-cd@37ee0097 pkg/apis/application/v1alpha1/application_defaults.go:22 | resources-finalizer.argocd.argoproj.io/background
argoproj/argo-cd@37ee0097 pkg/apis/application/v1alpha1/application_defaults.go:13 | pre-delete-finalizer.argocd.argoproj.io
argoproj/argo-cd@37ee0097 pkg/apis/application/v1alpha1/application_defaults.go:16 | post-delete-finalizer.argocd.argoproj.io
argoproj/argo-cd@37ee0097 controller/appcontroller.go:1428 | pre-delete-finalizer.argocd.argoproj.io/cleanup
argoproj/argo-cd@37ee0097 controller/appcontroller.go:1445 | post-delete-finalizer.argocd.argoproj.io/cleanup
argoproj/argo-cd@37ee0097 gitops-engine/pkg/sync/hook/hook.go:15 | argocd.argoproj.io/hook-finalizer
fluxcd/kustomize-controller@186fb3b2 api/v1/kustomization_types.go:29 | finalizers.fluxcd.io
fluxcd/helm-controller@0f61a860 api/v2/helmrelease_types.go:37 | finalizers.fluxcd.io
fluxcd/source-controller@39b711b1 api/v1/condition_types.go:19 | finalizers.fluxcd.io
fluxcd/flagger@15bd6ad5 pkg/controller/finalizer.go:32 | finalizer.flagger.app
flux-iac/tofu-controller@4cb9876f api/v1alpha2/terraform_types.go:593 | finalizers.tf.contrib.fluxcd.io
pulumi/pulumi-kubernetes-operator@475dbc6c operator/internal/controller/pulumi/stack_controller.go:92 | finalizer.stack.pulumi.com
hashicorp/hcp-terraform-operator@6c975cbe internal/controller/consts.go:85 | workspace.app.terraform.io/finalizer
hashicorp/hcp-terraform-operator@6c975cbe internal/controller/consts.go:25 | agentpool.app.terraform.io/finalizer
hashicorp/hcp-terraform-operator@6c975cbe internal/controller/consts.go:38 | module.app.terraform.io/finalizer
crossplane/crossplane-runtime@4e7ed235 pkg/reconciler/managed/reconciler.go:47 | finalizer.managedresource.crossplane.io
crossplane/crossplane-runtime@4e7ed235 pkg/reconciler/providerconfig/reconciler.go:41 | in-use.crossplane.io
crossplane/crossplane@2d040d2d internal/controller/apiextensions/composite/reconciler.go:60 | composite.apiextensions.crossplane.io
crossplane/crossplane@2d040d2d internal/controller/apiextensions/claim/reconciler.go:49 | finalizer.apiextensions.crossplane.io
crossplane/crossplane@2d040d2d internal/controller/apiextensions/definition/reconciler.go:65 | defined.apiextensions.crossplane.io
crossplane/crossplane@2d040d2d internal/controller/apiextensions/offered/reconciler.go:58 | offered.apiextensions.crossplane.io
crossplane/crossplane@2d040d2d internal/controller/protection/usage/reconciler.go:59 | usage.apiextensions.crossplane.io
crossplane/crossplane@2d040d2d internal/controller/pkg/revision/reconciler.go:64 | revision.pkg.crossplane.io lock.pkg.crossplane.io
kro-run/kro@36c6d0b6 pkg/metadata/finalizers.go:27 | kro.run/finalizer
operator-framework/operator-lifecycle-manager@992bb097 pkg/controller/operators/olm/operator.go:1391 | operators.coreos.com/csv-cleanup
operator-framework/operator-controller@df2c201d internal/operator-controller/controllers/clusterextension_controller.go:60 | olm.operatorframework.io/cleanup-contentmanager-cache olm.operatorframework.io/cleanup-unpack-cache
operator-framework/operator-controller@df2c201d internal/catalogd/controllers/core/clustercatalog_controller.go:49 | olm.operatorframework.io/delete-server-cache
operator-framework/operator-sdk@60559f3e internal/helm/controller/reconcile.go:64 | helm.sdk.operatorframework.io/uninstall-release uninstall-helm-release
rancher/wrangler@82381151 pkg/generic/remove.go:9 | wrangler.cattle.io/any-handler wrangler.cattle.io/on-helm-chart-remove
nolar/kopf@60d02aef kopf/_cogs/configs/configuration.py:426 | kopf.zalando.org/KopfFinalizerMarker
metacontroller/metacontroller@175eac07 pkg/controller/composite/controller.go:215 | metacontroller.io/compositecontroller-a metacontroller.io/decoratorcontroller-a
kubernetes-sigs/aws-load-balancer-controller@225f4456 pkg/shared_constants/finalizers.go:11 | service.k8s.aws/resources
kubernetes-sigs/aws-load-balancer-controller@225f4456 pkg/shared_constants/finalizers.go:8 | ingress.k8s.aws/resources
kubernetes-sigs/aws-load-balancer-controller@225f4456 pkg/shared_constants/finalizers.go:5 | group.ingress.k8s.aws/any-group
kubernetes-sigs/aws-load-balancer-controller@225f4456 pkg/shared_constants/finalizers.go:17 | gateway.k8s.aws/nlb
kubernetes-sigs/aws-load-balancer-controller@225f4456 pkg/shared_constants/finalizers.go:20 | gateway.k8s.aws/alb
kubernetes-sigs/aws-load-balancer-controller@225f4456 pkg/shared_constants/finalizers.go:32 | aga.k8s.aws/resources
kubernetes-sigs/aws-load-balancer-controller@225f4456 controllers/elbv2/targetgroupbinding_controller.go:53 | elbv2.k8s.aws/resources
kubernetes-sigs/karpenter@22664681 pkg/apis/v1/labels.go:64 | karpenter.sh/termination
aws/karpenter-provider-aws@1d927085 pkg/apis/v1/labels.go:78 | karpenter.k8s.aws/termination
aws-controllers-k8s/s3-controller@1051f76f pkg/resource/bucket/descriptor.go:31 | finalizers.s3.services.k8s.aws/Bucket
aws-controllers-k8s/runtime@95428e7b pkg/runtime/field_export_reconciler.go:46 | finalizers.services.k8s.aws/FieldExport
aws/amazon-vpc-resource-controller-k8s@b8d42511 pkg/config/type.go:55 | networking.k8s.aws/resource-cleanup
aws/aws-app-mesh-controller-for-k8s@7588d122 pkg/k8s/finalizers.go:16 | finalizers.appmesh.k8s.aws/aws-appmesh-resources finalizers.appmesh.k8s.aws/mesh-members
kubernetes/ingress-gce@acbcf5d6 pkg/utils/common/finalizer.go:35 | networking.gke.io/ingress-finalizer-V2
kubernetes/ingress-gce@acbcf5d6 pkg/utils/common/finalizer.go:42 | networking.gke.io/neg-finalizer
kubernetes/ingress-gce@acbcf5d6 pkg/utils/common/finalizer.go:38 | gke.networking.io/l4-ilb-v1
kubernetes/ingress-gce@acbcf5d6 pkg/utils/common/finalizer.go:40 | gke.networking.io/l4-ilb-v2
kubernetes/ingress-gce@acbcf5d6 pkg/utils/common/finalizer.go:44 | gke.networking.io/l4-netlb-v1
kubernetes/ingress-gce@acbcf5d6 pkg/utils/common/finalizer.go:46 | gke.networking.io/l4-netlb-v2
kubernetes/ingress-gce@acbcf5d6 pkg/psc/controller.go:72 | networking.gke.io/service-attachment-finalizer
GoogleCloudPlatform/k8s-config-connector@cdb85ecf pkg/k8s/constants.go:57 | cnrm.cloud.google.com/finalizer
GoogleCloudPlatform/k8s-config-connector@cdb85ecf pkg/k8s/constants.go:58 | cnrm.cloud.google.com/deletion-defender
Azure/azure-service-operator, const GenericControllerFinalizer | serviceoperator.azure.com/finalizer
tailscale/tailscale@de9ec7ee cmd/k8s-operator/sts.go:58 | tailscale.com/finalizer
kubernetes-sigs/cluster-api@ae7ff047 api/core/v1beta2/cluster_types.go:37 | cluster.cluster.x-k8s.io
kubernetes-sigs/cluster-api@ae7ff047 api/core/v1beta2/machine_types.go:28 | machine.cluster.x-k8s.io
kubernetes-sigs/cluster-api@ae7ff047 api/core/v1beta2/machinepool_types.go:28 | machinepool.cluster.x-k8s.io
kubernetes-sigs/cluster-api@ae7ff047 api/core/v1beta2/machinedeployment_types.go:31 | cluster.x-k8s.io/machinedeployment
kubernetes-sigs/cluster-api@ae7ff047 api/core/v1beta2/machineset_types.go:35 | cluster.x-k8s.io/machineset
kubernetes-sigs/cluster-api@ae7ff047 api/controlplane/kubeadm/v1beta2/kubeadm_control_plane_types.go:41 | kubeadm.controlplane.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-aws@2cf09d78 api/v1beta2/awscluster_types.go:28 | awscluster.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-aws@2cf09d78 api/v1beta2/awsmachine_types.go:28 | awsmachine.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-azure@69ec3a40 api/v1beta1/azurecluster_types.go:27 | azurecluster.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-azure@69ec3a40 api/v1beta1/azuremachine_types.go:29 | azuremachine.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-vsphere@111a1ba9 api/govmomi/v1beta2/vspherecluster_types.go:28 | vspherecluster.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-vsphere@111a1ba9 api/govmomi/v1beta2/vspherevm_types.go:28 | vspherevm.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-openstack@e52de58a api/v1beta1/openstackcluster_types.go:30 | openstackcluster.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-provider-gcp@5e0bb3b2 api/v1beta1/gcpmachine_types.go:27 | gcpmachine.infrastructure.cluster.x-k8s.io
kubernetes-sigs/cluster-api-operator@46918b65 api/v1alpha2/provider_types.go:25 | provider.cluster.x-k8s.io
openshift/machine-api-operator@95119612 vendor/github.com/openshift/api/machine/v1beta1/types_machine.go:14 | machine.machine.openshift.io
metal3-io/baremetal-operator@02aa5059 apis/metal3.io/v1alpha1/baremetalhost_types.go:38 | baremetalhost.metal3.io
openshift/hive@c02e5173 apis/hive/v1/clusterdeployment_types.go:27 | hive.openshift.io/deprovision
openshift/hypershift@3ee96155 hypershift-operator/controllers/hostedcluster/hostedcluster_controller.go:123 | hypershift.openshift.io/finalizer
openshift/cluster-ingress-operator@acca9642 pkg/manifests/manifests.go:82 | ingresscontroller.operator.openshift.io/finalizer-ingresscontroller
openshift/cluster-ingress-operator@acca9642 pkg/manifests/manifests.go:86 | operator.openshift.io/ingress-dns
openshift/cluster-image-registry-operator@02bb5c2c pkg/defaults/defaults.go:94 | imageregistry.operator.openshift.io/finalizer
rancher/rancher@59bd052e pkg/controllers/managementuser/rbac/namespace_handler.go:44 | controller.cattle.io/namespace-auth
rancher/rancher@59bd052e pkg/controllers/management/auth/user.go:59 | controller.cattle.io/any-handler clusterscoped.controller.cattle.io/any-handler_c-abc
rancher/fleet@3b2c622c internal/cmd/controller/finalize/finalize.go:19 | fleet.cattle.io/bundle-finalizer
rancher/fleet@3b2c622c internal/cmd/controller/finalize/finalize.go:18 | fleet.cattle.io/gitrepo-finalizer
rancher/fleet@3b2c622c internal/cmd/controller/finalize/finalize.go:20 | fleet.cattle.io/bundle-deployment-finalizer
rancher/fleet@3b2c622c internal/cmd/controller/finalize/finalize.go:21 | fleet.cattle.io/cluster-finalizer
gardener/gardener@b312835d extensions/pkg/controller/infrastructure/controller.go:28 | gardener gardener.cloud/anything extensions.gardener.cloud/worker
karmada-io/karmada@f8fdd02d pkg/util/constants.go:123 | karmada.io/execution-controller
karmada-io/karmada@f8fdd02d pkg/util/constants.go:127 | karmada.io/binding-controller
karmada-io/karmada@f8fdd02d pkg/util/constants.go:119 | karmada.io/cluster-controller
open-cluster-management-io/ocm@00f84c32 vendor/open-cluster-management.io/api/cluster/v1/types.go:294 | cluster.open-cluster-management.io/api-resource-cleanup
open-cluster-management-io/ocm@00f84c32 vendor/open-cluster-management.io/api/work/v1/types.go:680 | cluster.open-cluster-management.io/manifest-work-cleanup
kubernetes-sigs/kubefed@16fb8539 pkg/controller/sync/controller.go:59 | kubefed.io/sync-controller
clusternet/clusternet@19245baa pkg/known/constant.go:56 | apps.clusternet.io/finalizer
liqotech/liqo@557c199c internal/crdReplicator/reflection/handler.go:43 | crdreplicator.liqo.io/resource
kubernetes-sigs/hierarchical-namespaces@edf6ade7 api/v1alpha2/hierarchy_types.go:32 | hnc.x-k8s.io/hasSubnamespace
submariner-io/submariner-operator@393ed877 pkg/names/names.go:27 | controllers.submariner.io/cleanup
kubernetes-sigs/gateway-api@4564255a apis/v1/gatewayclass_types.go:46 | gateway-exists-finalizer.gateway.networking.k8s.io
istio-ecosystem/sail-operator@328df99d pkg/constants/constants.go:47 | sailoperator.io/sail-operator
knative/eventing@8cf4c4b6 pkg/client/injection/reconciler/eventing/v1/trigger/controller.go:47 | triggers.eventing.knative.dev brokers.eventing.knative.dev
knative/operator@b4f2c254 pkg/client/injection/reconciler/operator/v1beta1/knativeserving/controller.go:47 | knativeservings.operator.knative.dev
tektoncd/chains@e752b013 pkg/reconciler/taskrun/controller.go:76 | chains.tekton.dev chains.tekton.dev/pipelinerun
tektoncd/operator@39014328 pkg/client/injection/reconciler/operator/v1alpha1/tektonaddon/controller.go:47 | tektonaddons.operator.tekton.dev tektonchains.operator.tekton.dev
tigera/operator@40788b9b pkg/render/finalizers.go:21 | tigera.io/operator-cleanup operator.tigera.io/installation-controller
tigera/operator@40788b9b pkg/render/node.go:64 | tigera.io/cni-protector
kubeovn/kube-ovn@1533681d pkg/util/const.go:17 | kubeovn.io/kube-ovn-controller kube-ovn-controller
k8snetworkplumbingwg/sriov-network-operator@249e2001 api/v1/helper.go:32 | netattdef.finalizers.sriovnetwork.openshift.io
hashicorp/consul-k8s@a507b1d1 control-plane/controllers/configentries/configentry_controller.go:33 | finalizers.consul.hashicorp.com
cert-manager/cert-manager@2d0d7f7f pkg/apis/acme/v1/const.go:21 | finalizer.acme.cert-manager.io acme.cert-manager.io/finalizer
external-secrets/external-secrets@cc5bfbc2 pkg/controllers/externalsecret/externalsecret_controller.go:73 | externalsecrets.external-secrets.io/externalsecret-cleanup
external-secrets/external-secrets@cc5bfbc2 pkg/controllers/pushsecret/pushsecret_controller.go:74 | pushsecret.externalsecrets.io/finalizer
external-secrets/external-secrets@cc5bfbc2 pkg/controllers/secretstore/common.go:57 | secretstore.externalsecrets.io/finalizer
hashicorp/vault-secrets-operator@9b840a5a controllers/vaultdynamicsecret_controller.go:44 | vaultdynamicsecret.secrets.hashicorp.com/finalizer
hashicorp/vault-secrets-operator@9b840a5a controllers/vaultstaticsecret_controller.go:40 | vaultstaticsecret.secrets.hashicorp.com/finalizer
hashicorp/vault-secrets-operator@9b840a5a controllers/vaultpkisecret_controller.go:38 | vaultpkisecrets.secrets.hashicorp.com/finalizer
Infisical/kubernetes-operator@8a8a6c7b internal/services/infisicalsecret/reconciler.go:37 | secrets.finalizers.infisical.com
kyverno/kyverno cmd/cleanup-controller/main.go | kyverno.io/policywebhooks kyverno.io/ttlwebhooks
strimzi/strimzi-kafka-operator@8541da1e topic-operator/src/main/java/io/strimzi/operator/topic/KubernetesHandler.java:24 | strimzi.io/topic-operator
rabbitmq/cluster-operator@06cda8e8 internal/controller/reconcile_finalizer.go:19 | deletion.finalizers.rabbitmqclusters.rabbitmq.com
rabbitmq/messaging-topology-operator@e736e2df internal/controller/utils.go:100 | deletion.finalizers.queues.rabbitmq.com
cloudnative-pg/cloudnative-pg@a95a534d pkg/utils/finalizers.go:25 | cnpg.io/deleteDatabase cnpg.io/deletePublication cnpg.io/deleteSubscription
zalando/postgres-operator@a7aaad0a pkg/cluster/cluster.go:50 | postgres-operator.acid.zalan.do
CrunchyData/postgres-operator@0fbac306 internal/naming/annotations.go:11 | postgres-operator.crunchydata.com/finalizer
percona/percona-xtradb-cluster-operator@b3b0b10a pkg/naming/naming.go:10 | percona.com/delete-pxc-pods-in-order percona.com/delete-pxc-pvc
percona/percona-server-mongodb-operator@b15af500 pkg/naming/naming.go:20 | percona.com/delete-psmdb-pods-in-order percona.com/delete-psmdb-pvc
mariadb-operator/mariadb-operator@8970edf8 internal/controller/database_controller_finalizer.go:15 | database.k8s.mariadb.com/finalizer
mariadb-operator/mariadb-operator@8970edf8 internal/controller/user_controller_finalizer.go:15 | user.k8s.mariadb.com/finalizer
mariadb-operator/mariadb-operator@8970edf8 internal/controller/grant_controller_finalizer.go:15 | grant.k8s.mariadb.com/finalizer
k8ssandra/cass-operator@d5697290 apis/cassandra/v1beta1/cassandradatacenter_types.go:60 | finalizer.cassandra.datastax.com
mongodb/mongodb-atlas-kubernetes@3fb4fa5d internal/controller/customresource/finalizer.go:29 | mongodbatlas/finalizer
OT-CONTAINER-KIT/redis-operator@5dd04e17 internal/controller/rediscluster/rediscluster_controller.go:45 | redisFinalizer redisClusterFinalizer redisReplicationFinalizer redisSentinelFinalizer
apecloud/kubeblocks@13138f46 pkg/constant/finalizer.go:24 | cluster.kubeblocks.io/finalizer component.kubeblocks.io/finalizer
Altinity/clickhouse-operator@50e8d049 pkg/controller/chi/worker.go:50 | finalizer.clickhouseinstallation.altinity.com
nats-io/nack@f6dad096 internal/controller/types.go:6 | stream.nats.io/finalizer
datainfrahq/druid-operator@8da631fa controllers/druid/finalizers.go:36 | deletepvc.finalizers.druid.apache.org
prometheus-operator/prometheus-operator@6adcebc5 pkg/k8s/finalizer.go:27 | monitoring.coreos.com/status-cleanup
VictoriaMetrics/operator@d0d258c8 api/operator/v1beta1/vmextra_types.go:92 | apps.victoriametrics.com/finalizer
grafana/grafana-operator@60d3ebd2 controllers/controller_shared.go:60 | operator.grafana.com/finalizer
open-telemetry/opentelemetry-operator@be894441 internal/controllers/opentelemetrycollector_controller.go:428 | opentelemetrycollector.opentelemetry.io/finalizer
DataDog/datadog-operator@55db5316 internal/controller/datadogagent/finalizer.go:22 | finalizer.agent.datadoghq.com
kube-logging/logging-operator@51679aa5 controllers/logging/logging_controller.go:57 | syslogngconfig.logging.banzaicloud.io/finalizer fluentdconfig.logging.banzaicloud.io/finalizer
kedacore/keda@8b4f083c controllers/keda/scaledobject_finalizer.go:35 | finalizer.keda.sh
kubernetes-sigs/kueue@ff69552e apis/kueue/v1beta2/constants.go:20 | kueue.x-k8s.io/resource-in-use
argoproj/argo-workflows@f016ad89 workflow/common/common.go:219 | workflows.argoproj.io/artifact-gc
argoproj/argo-workflows@f016ad89 workflow/common/common.go:222 | workflows.argoproj.io/status
argoproj/argo-events@6478ece4 pkg/reconciler/eventbus/controller.go:24 | eventbus-controller eventsource-controller sensor-controller
ray-project/kuberay@feeaf72f ray-operator/controllers/ray/utils/constant.go:88 | ray.io/gcs-ft-redis-cleanup-finalizer
ray-project/kuberay@feeaf72f ray-operator/controllers/ray/utils/constant.go:347 | ray.io/rayjob-finalizer
kserve/kserve@aaac4e29 pkg/controller/v1beta1/inferenceservice/controller.go:177 | inferenceservice.finalizers
kubeflow/dashboard@d8424648 components/profile-controller/controllers/profile_controller.go:57 | profile-finalizer
chaos-mesh/chaos-mesh@608b61e7 controllers/common/finalizers/controller.go:38 | chaos-mesh/records
kubevirt/kubevirt@d923fdb8 staging/src/kubevirt.io/api/core/v1/types.go:1250 | kubevirt.io/foregroundDeleteVirtualMachine
kubevirt/kubevirt@d923fdb8 staging/src/kubevirt.io/api/core/v1/types.go:1253 | kubevirt.io/virtualMachineControllerFinalize
kubevirt/kubevirt@d923fdb8 staging/src/kubevirt.io/api/core/v1/types.go:1254 | kubevirt.io/migrationJobFinalize
kubevirt/kubevirt@d923fdb8 pkg/virt-operator/util/client.go:39 | kubevirt.io/foregroundDeleteKubeVirt
kubevirt/kubevirt@d923fdb8 pkg/storage/snapshot/snapshot.go:50 | snapshot.kubevirt.io/vmsnapshot-protection
kubevirt/containerized-data-importer@c07cdb6f pkg/operator/controller/controller.go:57 | operator.cdi.kubevirt.io
kubevirt/containerized-data-importer@c07cdb6f pkg/controller/datavolume/clone-controller-base.go:134 | cdi.kubevirt.io/dataVolumeFinalizer
kubevirt/hyperconverged-cluster-operator@03da3cff controllers/hyperconverged/hyperconverged_controller.go:71 | kubevirt.io/hyperconverged
vmware-tanzu/velero@d30d389b pkg/controller/restore_controller.go:96 | restores.velero.io/external-resources-finalizer
vmware-tanzu/velero@d30d389b pkg/controller/data_upload_controller.go:61 | velero.io/data-upload-download-finalizer
vmware-tanzu/velero@d30d389b pkg/controller/pod_volume_backup_controller.go:57 | velero.io/pod-volume-finalizer
tigera/operator@40788b9b pkg/controller/logstorage/elastic/elastic_controller.go:72 | tigera.io/eck-cleanup
OLM's documentation, Enabling Operator Cleanup | operatorframework.io/cleanup-apis
topolvm/topolvm@00d49c2a constants.go:32 | topolvm.cybozu.com/pvc
topolvm/topolvm@00d49c2a constants.go:29 | topolvm.cybozu.com/node
aws/aws-application-networking-k8s@eb0724e1 pkg/controllers/route_controller.go | httproute.k8s.aws/resources grpcroute.k8s.aws/resources
ngrok/ngrok-operator@5cf6f825 internal/util/k8s.go | k8s.ngrok.com/finalizer ngrok.com/finalizer
GoogleCloudPlatform/gke-autoneg-controller@fe6605b7 controllers/autoneg.go | controller.autoneg.dev/neg anthos.cft.dev/autoneg
kubernetes-sigs/kueue@1531d550 pkg/constants/constants.go:45 | kueue.x-k8s.io/managed
actions/actions-runner-controller@c34d7c1f controllers/actions.github.com/autoscalingrunnerset_controller.go | autoscalingrunnerset.actions.github.com/finalizer
actions/actions-runner-controller@bf77806d controllers/actions.github.com/autoscalinglistener_controller.go:45 | autoscalinglistener.actions.github.com/finalizer
actions/actions-runner-controller@4306ef30 controllers/actions.github.com/ephemeralrunnerset_controller.go | ephemeralrunnerset.actions.github.com/finalizer
actions/actions-runner-controller@93d14d6a controllers/actions.github.com/ephemeralrunner_controller.go:46 | ephemeralrunner.actions.github.com/finalizer
actions/actions-runner-controller@93d14d6a controllers/actions.github.com/ephemeralrunner_controller.go:47 | ephemeralrunner.actions.github.com/runner-registration-finalizer
actions/actions-runner-controller@cb319d3c controllers/actions.github.com/constants.go:40 | actions.github.com/cleanup-protection
volcano-sh/volcano-global@3e0b5478 pkg/controllers/hyperjob/hyperjob_controller.go | hyperjob.batch.volcano.sh/finalizer
operator-framework/java-operator-sdk io/javaoperatorsdk/operator/ReconcilerUtils.java | flinkdeployments.flink.apache.org/finalizer flinksessionjobs.flink.apache.org/finalizer
1Password/onepassword-operator@3569cc9f internal/controller/onepassworditem_controller.go | onepassword.com/finalizer.secret
`
