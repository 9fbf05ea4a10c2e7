//go:build commands

// Names the commands that are built from here, so that `go mod tidy`
// keeps what they need in go.mod and go.sum.
package commands

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
