-- Of traces, those of a later side whose session or near-duplicate lies on an earlier one: there it would be
-- known already. They are left out, 3; so no session and no group lies on two sides.
SELECT * REPLACE (
    toUInt8(if(
        side > least(
            min(side) OVER (PARTITION BY group), min(side) OVER (PARTITION BY tenant, session_id, epoch)
        ),
        3, side
    )) AS side
)
