package model_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
)

func TestQuota(t *testing.T) {
	open := func(testing.TB) (a, b model.Quota) {
		q := model.NewQuota()
		return q, q
	}
	modeltest.TestQuota(t, modeltest.Quotas{Window: time.Minute, Open: open, Within: synctest.Test})
}
