/** The part of launchdarkly-eventsource that the bench uses; the package has no types. */
declare module 'launchdarkly-eventsource' {
  export class EventSource {
    constructor(url: string)
    addEventListener(type: string, listener: (event: { readonly data: string }) => void): void
    addEventListener(type: 'error', listener: (event: { readonly message?: string }) => void): void
    close(): void
  }
}
