/** The responses and webhooks of embedded services that deviated from the OpenAPI document, since the last check. */
export const deviations: string[] = []
