import type {
  Citation,
  FieldBasis,
  JsonOutput,
  McpToolCall,
  TaskOutput,
  TextOutput,
} from '../../../protocol/output.ts'
import * as s from './kinds.ts'

const citation = s.component(
  'Citation',
  s.object<Citation>({ url: s.url }, { title: s.orNull(s.text), excerpts: s.orNull(s.list(s.text)) }),
)

/** The basis of a field (§2.3). */
export const fieldBasis = s.component(
  'FieldBasis',
  s.object<FieldBasis>(
    { field: s.text, reasoning: s.text },
    { citations: s.list(citation), confidence: s.orNull(s.openOneOf<string>(['low', 'medium', 'high'])) },
  ),
)

/** The call of a tool (§2.3). */
export const toolCall = s.component(
  'McpToolCall',
  s.object<McpToolCall>(
    { tool_call_id: s.text, server_name: s.text, tool_name: s.text, arguments: s.text },
    { content: s.orNull(s.text), error: s.orNull(s.text) },
  ),
)

const common = {
  mcp_tool_calls: s.orNull(s.list(toolCall)),
  beta_fields: s.orNull(s.json),
}

/** The output of a task run (§2.3). */
export const taskOutput = s.component(
  'TaskOutput',
  s.variants<TaskOutput, 'type'>({
    text: s.component(
      'TextOutput',
      s.object<TextOutput>({ type: s.oneOf(['text']), content: s.text, basis: s.list(fieldBasis) }, common),
    ),
    json: s.component(
      'JsonOutput',
      s.object<JsonOutput>(
        { type: s.oneOf(['json']), content: s.json, basis: s.list(fieldBasis) },
        { ...common, output_schema: s.orNull(s.json) },
      ),
    ),
  }),
)
