// The schema, as numbered steps that are applied once each and in order; api/schema.sql shows the
// result. A step that has been released is never edited: what changes is a new step.
#pragma once

#include "base/result.hpp"
#include "drivers/store/session.hpp"

namespace gs::store {

int schema_version();  // that this program knows

// Brings the database up to `version`, in one transaction. A newer database is refused. Safe when
// two programs start at once.
Status migrate(Session& session, int version = schema_version());

// As far as it can be said without writing: present, and of the version this program knows.
Status check_schema(Session& session);

}  // namespace gs::store
