import type { OutboxEvent } from '../store/index.ts'

export const CLOUD_EVENT_TYPE = 'application/cloudevents+json; charset=utf-8'

/**
 * An event in the JSON format of CloudEvents 1.0, structured mode, with the extensions `tenant` and `traceparent`. The
 * same bytes at each delivery, since nothing in it tells of the delivery.
 */
export function cloudEvent(event: OutboxEvent): string {
  const attributes = JSON.stringify({
    specversion: '1.0',
    id: event.id,
    source: '/punctual/orders',
    type: event.type,
    subject: event.subject,
    time: new Date(event.atMs).toISOString(),
    datacontenttype: 'application/json',
    tenant: event.tenant,
    traceparent: event.traceparent,
  })
  // The order is JSON already; parsing it only to write it again would cost more than the rest.
  return `${attributes.slice(0, -1)},"data":${event.json}}`
}
