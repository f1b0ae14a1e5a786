// SPDX-License-Identifier: Apache-2.0

package testworld

import "github.com/kubectl-gc/kubectl-gc/pkg/graph"

// Served returns types that a cluster serves, in new memory: for tests that are about objects, not about types.
// Tests that draw types, or count them, have few of their own.
func Served() []graph.Resource { return Types(served) }

const served = `
v1                                      Pod                              pods                              namespaced
v1                                      ConfigMap                        configmaps                        namespaced
v1                                      Secret                           secrets                           namespaced
v1                                      PersistentVolumeClaim            persistentvolumeclaims            namespaced
v1                                      PersistentVolume                 persistentvolumes                 cluster
v1                                      Namespace                        namespaces                        cluster
v1                                      Node                             nodes                             cluster
v1                                      ServiceAccount                   serviceaccounts                   namespaced
v1                                      Service                          services                          namespaced
v1                                      Event                            events                            namespaced
v1                                      Endpoints                        endpoints                         namespaced
v1                                      ReplicationController            replicationcontrollers            namespaced
v1                                      ResourceQuota                    resourcequotas                    namespaced
node.k8s.io/v1                          RuntimeClass                     runtimeclasses                    cluster
apps/v1                                 Deployment                       deployments                       namespaced
apps/v1                                 StatefulSet                      statefulsets                      namespaced
apps/v1                                 ReplicaSet                       replicasets                       namespaced
rbac.authorization.k8s.io/v1            ClusterRole                      clusterroles                      cluster
rbac.authorization.k8s.io/v1            ClusterRoleBinding               clusterrolebindings               cluster
rbac.authorization.k8s.io/v1            Role                             roles                             namespaced
rbac.authorization.k8s.io/v1            RoleBinding                      rolebindings                      namespaced
batch/v1                                Job                              jobs                              namespaced
batch/v1                                CronJob                          cronjobs                          namespaced
autoscaling/v2                          HorizontalPodAutoscaler          horizontalpodautoscalers          namespaced
keda.sh/v1alpha1                        ScaledObject                     scaledobjects                     namespaced
storage.k8s.io/v1                       VolumeAttachment                 volumeattachments                 cluster
storage.k8s.io/v1                       VolumeAttributesClass            volumeattributesclasses           cluster
storage.k8s.io/v1                       CSIDriver                        csidrivers                        cluster
storage.k8s.io/v1                       StorageClass                     storageclasses                    cluster
networking.k8s.io/v1                    ServiceCIDR                      servicecidrs                      cluster
networking.k8s.io/v1                    IPAddress                        ipaddresses                       cluster
networking.k8s.io/v1                    Ingress                          ingresses                         namespaced
resource.k8s.io/v1                      ResourceClaim                    resourceclaims                    namespaced
scheduling.k8s.io/v1alpha1              PodGroup                         podgroups                         namespaced
policy/v1                               PodDisruptionBudget              poddisruptionbudgets              namespaced
discovery.k8s.io/v1                     EndpointSlice                    endpointslices                    namespaced
admissionregistration.k8s.io/v1         ValidatingWebhookConfiguration   validatingwebhookconfigurations   cluster
admissionregistration.k8s.io/v1         MutatingWebhookConfiguration     mutatingwebhookconfigurations     cluster
admissionregistration.k8s.io/v1         ValidatingAdmissionPolicy        validatingadmissionpolicies       cluster
admissionregistration.k8s.io/v1         ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster
admissionregistration.k8s.io/v1         MutatingAdmissionPolicy          mutatingadmissionpolicies         cluster
admissionregistration.k8s.io/v1         MutatingAdmissionPolicyBinding   mutatingadmissionpolicybindings   cluster
coordination.k8s.io/v1                  Lease                            leases                            namespaced
apiregistration.k8s.io/v1               APIService                       apiservices                       cluster
apiextensions.k8s.io/v1                 CustomResourceDefinition         customresourcedefinitions         cluster
scheduling.k8s.io/v1                    PriorityClass                    priorityclasses                   cluster
extensions/v1beta1                      Ingress                          ingresses                         namespaced
snapshot.storage.k8s.io/v1              VolumeSnapshot                   volumesnapshots                   namespaced
snapshot.storage.k8s.io/v1              VolumeSnapshotContent            volumesnapshotcontents            cluster
example.com/v1                          Widget                           widgets                           namespaced
ray.io/v1                               RayCluster                       rayclusters                      namespaced
helm.cattle.io/v1                       HelmChart                        helmcharts                       namespaced
tekton.dev/v1                           TaskRun                          taskruns                         namespaced
work.open-cluster-management.io/v1      ManifestWork                     manifestworks                    namespaced
cluster.open-cluster-management.io/v1   ManagedCluster                   managedclusters                   cluster
work.karmada.io/v1alpha1                Work                             works                             namespaced
example.com/v1                          Gizmo                            gizmos                            cluster
kafka.strimzi.io/v1                     KafkaTopic                       kafkatopics                       namespaced
acme.cert-manager.io/v1                 Challenge                        challenges                        namespaced
argoproj.io/v1alpha1                    Application                      applications                      namespaced
argoproj.io/v1alpha1                    ApplicationSet                   applicationsets                   namespaced
argoproj.io/v1alpha1                    AppProject                       appprojects                       namespaced
kustomize.toolkit.fluxcd.io/v1          Kustomization                    kustomizations                    namespaced
helm.toolkit.fluxcd.io/v2               HelmRelease                      helmreleases                      namespaced
aws.crossplane.io/v1beta1               ProviderConfig                   providerconfigs                   cluster
aws.crossplane.io/v1beta1               ProviderConfigUsage              providerconfigusages              cluster
s3.aws.crossplane.io/v1beta1            Bucket                           buckets                           cluster
protection.crossplane.io/v1beta1        ClusterUsage                     clusterusages                     cluster
cluster.x-k8s.io/v1beta1                Cluster                          clusters                          namespaced
infrastructure.cluster.x-k8s.io/v1beta1 FakeMachine                      fakemachines                      namespaced
local.openebs.io/v1alpha1               LVMVolume                        lvmvolumes                        namespaced
external-secrets.io/v1alpha1            PushSecret                       pushsecrets                       namespaced
external-secrets.io/v1                  SecretStore                      secretstores                      namespaced
gateway.networking.k8s.io/v1            HTTPRoute                        httproutes                        namespaced
gateway.networking.k8s.io/v1            GatewayClass                     gatewayclasses                    cluster
gateway.networking.k8s.io/v1            Gateway                          gateways                          namespaced
postgresql.cnpg.io/v1                   Database                         databases                         namespaced
postgresql.cnpg.io/v1                   Cluster                          clusters                          namespaced
operators.coreos.com/v1alpha1           Subscription                     subscriptions                     namespaced
operators.coreos.com/v1alpha1           ClusterServiceVersion            clusterserviceversions            namespaced
operators.coreos.com/v1alpha1           InstallPlan                      installplans                      namespaced
operators.coreos.com/v1                 OperatorGroup                    operatorgroups                    namespaced
kueue.x-k8s.io/v1beta1                  ResourceFlavor                   resourceflavors                   cluster
kueue.x-k8s.io/v1beta1                  Workload                         workloads                         namespaced
kueue.x-k8s.io/v1beta1                  ClusterQueue                     clusterqueues                     cluster
karpenter.k8s.aws/v1                    EC2NodeClass                     ec2nodeclasses                    cluster
karpenter.sh/v1                         NodeClaim                        nodeclaims                        cluster
networking.k8s.io/v1                    IngressClass                     ingressclasses                    cluster
external-secrets.io/v1                  ClusterSecretStore               clustersecretstores               cluster
external-secrets.io/v1                  ExternalSecret                   externalsecrets                   namespaced
cache.acme.test/v1                      Cache                            caches                            namespaced
cluster.karmada.io/v1alpha1             Cluster                          clusters                          cluster
services.cloud.sap.com/v1               ServiceInstance                  serviceinstances                  namespaced
services.cloud.sap.com/v1               ServiceBinding                   servicebindings                   namespaced
atlas.mongodb.com/v1                    AtlasProject                     atlasprojects                     namespaced
atlas.mongodb.com/v1                    AtlasDatabaseUser                atlasdatabaseusers                namespaced
infra.contrib.fluxcd.io/v1alpha2        Terraform                        terraforms                        namespaced
pulumi.com/v1                           Stack                            stacks                            namespaced
sqs.aws.m.upbound.io/v1beta1            Queue                            queues                            namespaced
elasticsearch.k8s.elastic.co/v1         Elasticsearch                    elasticsearches                   namespaced
cert-manager.io/v1                      Certificate                      certificates                      namespaced
acme.cert-manager.io/v1                 Order                            orders                            namespaced
tekton.dev/v1                           PipelineRun                      pipelineruns                      namespaced
kibana.k8s.elastic.co/v1                Kibana                           kibanas                           namespaced
gateway.envoyproxy.io/v1alpha1          Backend                          backends                          namespaced
`
