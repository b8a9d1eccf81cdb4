-- SPDX-License-Identifier: Apache-2.0
-- What each event of a journal must hold, with the entries and the result that the journal knows
-- nothing of.

return require "sba.journal.events".schemas_with(require "sba.result.result_schema")
