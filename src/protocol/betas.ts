/** The beta feature that a run with a webhook needs, as a value of the beta header (§6.1). */
export const WEBHOOK_BETA = 'webhook-2025-08-12'
