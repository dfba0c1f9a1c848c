import { join } from "node:path";
import type { ServerFiles } from "./access.ts";

/** An address of 127.0.0.0/8 that is this cluster's alone, and the folder of its files. */
export interface Place {
  readonly address: string;
  readonly folder: string;
}

export const etcdUrlOf = ({ address }: Place): string => `http://${address}:2379`;
export const serverUrlOf = ({ address }: Place): string => `https://${address}:6443`;
export const controllerHealthUrlOf = ({ address }: Place): string => `http://${address}:8081/readyz`;

/** The server makes its certificate here, and an authority in the same file. */
export const certificateOf = ({ folder }: Place): string => join(folder, "certificates", "apiserver.crt");

export function etcdArguments(place: Place): string[] {
  const peerUrl = `http://${place.address}:2380`;
  return [
    `--data-dir=${join(place.folder, "etcd")}`,
    `--listen-client-urls=${etcdUrlOf(place)}`,
    `--advertise-client-urls=${etcdUrlOf(place)}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    "--unsafe-no-fsync", // it lives as long as its test
    "--log-level=warn",
  ];
}

/** Everything at its default but the address, the callers' tokens and what a lone server must be told. */
export function apiServerArguments(place: Place, { tokenFile, accountKey }: ServerFiles): string[] {
  return [
    `--etcd-servers=${etcdUrlOf(place)}`,
    `--bind-address=${place.address}`,
    `--advertise-address=${place.address}`,
    "--secure-port=6443",
    `--cert-dir=${join(place.folder, "certificates")}`,
    `--token-auth-file=${tokenFile}`,
    "--authorization-mode=RBAC",
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${accountKey}`,
    `--service-account-signing-key-file=${accountKey}`,
    "--service-cluster-ip-range=10.96.0.0/16",
    "--endpoint-reconciler-type=none",
  ];
}

/** What production has and the product relies on. Scheduling, volumes and pods are the local node's part. */
const controllers = [
  "garbage-collector-controller",
  "namespace-controller",
  "serviceaccount-controller",
  "root-ca-certificate-publisher-controller",
  "persistentvolumeclaim-protection-controller",
];

export function controllerManagerArguments(place: Place, kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--controllers=${controllers.join(",")}`,
    `--root-ca-file=${certificateOf(place)}`,
    "--leader-elect=false",
    "--secure-port=0",
  ];
}

export function sandboxControllerArguments(place: Place, kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    "--leader-elect=false",
    "--enable-webhook=false",
    "--metrics-bind-address=0",
    `--health-probe-bind-address=${place.address}:8081`,
  ];
}
