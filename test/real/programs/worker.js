// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
import { createApp } from './app.js'

/** Stores in what the worker has for that; here in its memory. */
const inbox = (received) => ({
  async put({ id }) {
    if (received.includes(id)) return 'duplicate'
    received.push(id)
    return 'stored'
  },
})

let app
export default {
  fetch(request, { RIVULET_BASE_URL: baseUrl, RIVULET_API_KEY: apiKey, RIVULET_WEBHOOK_SECRET: secret }) {
    app ??= createApp({ baseUrl, apiKey, secret }, inbox)
    return app(request)
  },
}
