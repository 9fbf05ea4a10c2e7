#!/usr/bin/env bash
# Makes certificates for the admission webhook: an authority, and a certificate for its Service.
#
#   generate-webhook-certs.sh [--namespace NS] [--service NAME]... [--secret NAME] [--extra-name NAME]...
#                             [--days N] [--ca-days N] [--out FOLDER] [--renew] [--apply]
#
# Into FOLDER (certs): ca.crt and ca.key, tls.crt and tls.key, and webhook-tls-secret.yaml, which is
# the Secret that the webhook mounts, with its namespace. Prints the caBundle.
#   --renew    keeps the authority that is there and makes a new certificate: the caBundle stays
#   --apply    applies the Secret with kubectl
# docs/webhook-certificates.md says how else the webhook can get its certificates.
set -euo pipefail

namespace=gpu-scheduler-system
services=()
secret=gpu-scheduler-webhook-tls
extra_names=()
days=365
ca_days=3650
out=certs
renew=false
apply=false

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
fail() { echo "generate-webhook-certs: $*" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case "$1" in
    --renew) renew=true ;;
    --apply) apply=true ;;
    -h | --help) usage; exit 0 ;;
    --*)
      [ $# -ge 2 ] || fail "$1 needs a value, or is not known; --help lists what there is"
      case "$1" in
        --namespace) namespace="$2" ;;
        --service) services+=("$2") ;;
        --secret) secret="$2" ;;
        --extra-name) extra_names+=("$2") ;;
        --days) days="$2" ;;
        --ca-days) ca_days="$2" ;;
        --out) out="$2" ;;
        *) fail "$1 is not known; --help lists what there is" ;;
      esac
      shift ;;
    *) fail "'$1' is not known; --help lists what there is" ;;
  esac
  shift
done
command -v openssl >/dev/null || fail "openssl is missing"
# The chart's Service, and that of the scheduler for those who serve both by one.
[ ${#services[@]} -gt 0 ] || services=(gpu-scheduler-webhook gpu-scheduler)

names=()
for service in "${services[@]}"; do
  names+=("DNS:$service" "DNS:$service.$namespace" "DNS:$service.$namespace.svc"
          "DNS:$service.$namespace.svc.cluster.local")
done
for name in "${extra_names[@]}"; do
  case "$name" in
    *:* | *[0-9].[0-9]*.[0-9]*.[0-9]*) names+=("IP:$name") ;;
    *) names+=("DNS:$name") ;;
  esac
done
alternatives="$(IFS=,; echo "${names[*]}")"

umask 077
mkdir -p "$out"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1" 2>/dev/null; }

if [ "$renew" = true ]; then
  [ -s "$out/ca.crt" ] && [ -s "$out/ca.key" ] || fail "--renew: there is no ca.crt and ca.key in $out"
  cp "$out/ca.crt" "$out/ca.key" "$work"
else
  new_key "$work/ca.key"
  openssl req -x509 -new -key "$work/ca.key" -days "$ca_days" -subj "/CN=gpu-scheduler webhook authority" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -out "$work/ca.crt" 2>/dev/null
fi

new_key "$work/tls.key"
openssl req -new -key "$work/tls.key" -subj "/CN=gpu-scheduler webhook" -out "$work/tls.csr" 2>/dev/null
cat > "$work/tls.ext" <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth
authorityKeyIdentifier=keyid
subjectAltName=$alternatives
END
openssl x509 -req -in "$work/tls.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -days "$days" \
  -set_serial "0x$(openssl rand -hex 16)" -extfile "$work/tls.ext" -out "$work/tls.crt" 2>/dev/null ||
  fail "openssl could not sign a certificate for $alternatives"
openssl verify -CAfile "$work/ca.crt" "$work/tls.crt" >/dev/null

encoded() { base64 -w 0 < "$1"; }
cat > "$work/webhook-tls-secret.yaml" <<END
apiVersion: v1
kind: Namespace
metadata:
  name: $namespace
---
apiVersion: v1
kind: Secret
metadata:
  name: $secret
  namespace: $namespace
  labels:
    app.kubernetes.io/name: gpu-scheduler
type: kubernetes.io/tls
data:
  ca.crt: $(encoded "$work/ca.crt")
  tls.crt: $(encoded "$work/tls.crt")
  tls.key: $(encoded "$work/tls.key")
END
for file in ca.key ca.crt tls.key tls.crt webhook-tls-secret.yaml; do
  mv "$work/$file" "$out/$file"
done

if [ "$apply" = true ]; then
  kubectl apply -f "$out/webhook-tls-secret.yaml" >&2
else
  echo "now: kubectl apply -f $out/webhook-tls-secret.yaml" >&2
fi
echo "good for $days days, for $alternatives" >&2
echo "caBundle:" >&2
encoded "$out/ca.crt"
echo
