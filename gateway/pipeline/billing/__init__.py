"""Chargeback without Spark and without a clock: prices, amounts, adjustments, invoices.

Theory of operation. A rate card (`prices`) and what tenants used in a month (`amounts.Used`) become
`amounts.Charges`: for each tenant the lines of its invoice, and what is nobody's. Everything is
computed as an exact fraction and rounded once, at the end, to the smallest unit of the currency.
`money.apportion` is the one place that rounds: it gives out whole units, and what is left over goes
to the largest remainders, so parts always sum to their whole.

With unit prices, the whole is the sum of the tenants: a tenant's total depends on nothing but its
own use, so that its invoice can be checked by itself, and a late record of another tenant never
moves it. With a fixed bill, the whole is the bill, and tenants are parts of it.

`adjustments` compares a closed month with what it is now, and `correcting` credits it and bills it
again; `closing` keeps a closed month as text; `focus` writes lines as the columns of FOCUS;
`invoices` and `overview` write pages.
"""
