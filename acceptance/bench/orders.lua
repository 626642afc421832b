-- wrk script: one order a request, each with a key of its own. Closed loop; wrk counts what is not 2xx.
local n = 0
local run = os.getenv("BENCH_RUN")
local headers = { ["Authorization"] = "Bearer demo", ["Content-Type"] = "application/json" }

request = function()
  n = n + 1
  headers["Idempotency-Key"] = run .. "-" .. n
  local body = '{"customerId":"cust-' .. (n % 1000)
    .. '","currency":"USD","items":[{"sku":"SKU-1","quantity":2},{"sku":"SKU-2","quantity":1}]}'
  return wrk.format("POST", "/v1/orders", headers, body)
end
