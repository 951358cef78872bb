import OpenAI from 'openai'

const { RIVULET_BASE_URL = 'http://127.0.0.1:8123', RIVULET_API_KEY = '' } = process.env

/** The service takes its key in `x-api-key` alone (§5). The client requires one for `Authorization`, which is not sent. */
const settings = { apiKey: 'unused', defaultHeaders: { 'x-api-key': RIVULET_API_KEY, authorization: null } }

/** Chat completions are under `/v1beta`, with `models.list()`. */
export const chats = new OpenAI({ ...settings, baseURL: `${RIVULET_BASE_URL}/v1beta` })

/** Responses are under `/v1`. */
export const responses = new OpenAI({ ...settings, baseURL: `${RIVULET_BASE_URL}/v1` }).responses
