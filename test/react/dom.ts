import { JSDOM } from 'jsdom'
import { afterAll } from 'vitest'

/**
 * A document for React in Node's own environment, for tests whose server runs in the same process: jsdom's environment replaces
 * classes such as `AbortController`, of which Node's servers need their own. Import it before React.
 */
const { window } = new JSDOM('<!doctype html><body></body>', { pretendToBeVisual: true })
Object.assign(globalThis, { window, document: window.document })
// The next file of this process is no page: there, `rivulet/live` would look for events of one.
afterAll(() => void Reflect.deleteProperty(globalThis, 'document'))

export const { body } = window.document
