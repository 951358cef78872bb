/** The beta feature that a run with a webhook needs, as a value of the beta header (§6.1). */
export const WEBHOOK_BETA = 'webhook-2025-08-12'
/** The beta feature of a basis with an entry for each element of a list (§2.3). */
export const FIELD_BASIS_BETA = 'field-basis-2025-11-25'
/** The beta feature that every request of memories needs; beyond the interface document. */
export const MEMORY_BETA = 'search-extract-2025-10-10'
/** The beta feature that every request of FindAll needs; beyond the interface document. */
export const FIND_ALL_BETA = 'findall-2025-09-15'
